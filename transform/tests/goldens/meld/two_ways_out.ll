; Arms that share their last block, and arms that return early: both leave to the same two blocks, and are melded whole.
define void @last_block_shared(ptr %p, ptr %q, i32 %k, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %a = load i32, ptr %p, align 4
  %b = load i32, ptr %q, align 4
  %a1 = mul i32 %a, %k
  %a2 = xor i32 %a1, 3
  %t = icmp sgt i32 %a2, %b
  br i1 %t, label %swap, label %join

else:
  %d = load i32, ptr %q, align 4
  %e = load i32, ptr %p, align 4
  %d1 = mul i32 %d, %k
  %d2 = xor i32 %d1, 5
  %u = icmp sgt i32 %d2, %e
  br i1 %u, label %swap, label %join

swap:
  %x = phi i32 [ %a2, %then ], [ %e, %else ]
  %y = phi i32 [ %b, %then ], [ %d2, %else ]
  store i32 %y, ptr %p, align 4
  store i32 %x, ptr %q, align 4
  br label %join

join:
  ret void
}

define i32 @returns_early(ptr %p, ptr %q, i32 %k, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %a = load i32, ptr %p, align 4
  %a1 = mul i32 %a, %k
  %a2 = sdiv i32 %a1, %a
  store i32 %a2, ptr %p, align 4
  %t = icmp eq i32 %a2, 7
  br i1 %t, label %out, label %more

else:
  %b = load i32, ptr %q, align 4
  %b1 = mul i32 %b, %k
  %b2 = sdiv i32 %b1, %b
  store i32 %b2, ptr %q, align 4
  %u = icmp eq i32 %b2, 7
  br i1 %u, label %out, label %more

more:
  %m = phi i32 [ %a2, %then ], [ %b2, %else ]
  %m1 = mul i32 %m, %m
  store i32 %m1, ptr %p, align 4
  br label %out

out:
  %r = phi i32 [ 0, %then ], [ %b1, %else ], [ %m, %more ]
  ret i32 %r
}

; Too little is alike: nothing changes.
define i32 @little(ptr %p, ptr %q, i32 %k, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %a = mul i32 %k, 9
  store i32 %a, ptr %p, align 4
  %t = icmp eq i32 %a, 7
  br i1 %t, label %out, label %more

else:
  %b = load i32, ptr %q, align 4
  %b1 = mul i32 %b, %k
  %u = icmp ugt i32 %b1, %b
  br i1 %u, label %more, label %out

more:
  %m = phi i32 [ %a, %then ], [ %b1, %else ]
  store i32 %m, ptr %p, align 4
  br label %out

out:
  %r = phi i32 [ 0, %then ], [ %b1, %else ], [ %m, %more ]
  ret i32 %r
}
