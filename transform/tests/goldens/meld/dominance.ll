; A value of one side that is used behind the melded loop reaches it by a phi, with nothing on the other side's path.
define i32 @carried(ptr %in, ptr %out, i32 %x, i64 %n, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %early = mul i32 %x, %x
  br label %loop

loop:
  %i = phi i64 [ 0, %then ], [ %i.next, %loop ]
  %p = getelementptr inbounds i32, ptr %in, i64 %i
  %v = load i32, ptr %p, align 4
  %w = mul i32 %v, 3
  store i32 %w, ptr %p, align 4
  %i.next = add i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %after, label %loop

after:
  %late = sub i32 %early, %w
  br label %join

else:
  br label %loop2

loop2:
  %j = phi i64 [ 0, %else ], [ %j.next, %loop2 ]
  %q = getelementptr inbounds i32, ptr %out, i64 %j
  %v2 = load i32, ptr %q, align 4
  %w2 = mul i32 %v2, 3
  store i32 %w2, ptr %q, align 4
  %j.next = add i64 %j, 1
  %done2 = icmp eq i64 %j.next, %n
  br i1 %done2, label %join, label %loop2

join:
  %r = phi i32 [ %late, %after ], [ %w2, %loop2 ]
  ret i32 %r
}
