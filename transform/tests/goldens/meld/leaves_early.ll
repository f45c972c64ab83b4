; An arm that may leave early to a block that other code leads to as well: what it does before that is melded.
define i32 @early(ptr %in, ptr %out, i32 %x, i1 %c, i1 %d) {
entry:
  br i1 %d, label %head, label %shared

head:
  br i1 %c, label %then, label %else

then:
  %a = load i32, ptr %in, align 4
  %a1 = mul i32 %a, %x
  %a2 = sdiv i32 %a1, %a
  store i32 %a2, ptr %in, align 4
  %stop = icmp eq i32 %a2, 7
  br i1 %stop, label %shared, label %rest

rest:
  %a3 = xor i32 %a2, %x
  store i32 %a3, ptr %in, align 4
  br label %join

else:
  %b = load i32, ptr %out, align 4
  %b1 = mul i32 %b, %x
  %b2 = sdiv i32 %b1, %b
  store i32 %b2, ptr %out, align 4
  br label %join

join:
  %r = phi i32 [ %a3, %rest ], [ %b2, %else ]
  %r2 = mul i32 %r, %r
  ret i32 %r2

shared:
  %s = phi i32 [ 0, %entry ], [ %a1, %then ]
  ret i32 %s
}

; Too little is alike: nothing changes.
define i32 @little(ptr %in, ptr %out, i32 %x, i1 %c, i1 %d) {
entry:
  br i1 %d, label %head, label %shared

head:
  br i1 %c, label %then, label %else

then:
  %a = mul i32 %x, %x
  store i32 %a, ptr %in, align 4
  %stop = icmp eq i32 %a, 7
  br i1 %stop, label %shared, label %join

else:
  %b = sdiv i32 %x, 5
  store i32 %b, ptr %out, align 4
  br label %join

join:
  %r = phi i32 [ %a, %then ], [ %b, %else ]
  ret i32 %r

shared:
  %s = phi i32 [ 0, %entry ], [ %a, %then ]
  ret i32 %s
}
