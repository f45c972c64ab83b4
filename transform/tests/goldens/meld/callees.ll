; What a callee costs counts: two calls of a function with a loop save what that runs, two calls of one that does little save little.
@out = external global i64

define internal i64 @long(i64 %a, i64 %n) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %s = phi i64 [ %a, %entry ], [ %t, %loop ]
  %m = mul i64 %s, 3
  %t = xor i64 %m, %i
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %n
  br i1 %c, label %loop, label %end
end:
  ret i64 %t
}

define internal i64 @short(i64 %a, i64 %n) noinline {
  ret i64 %a
}

define void @saves(i1 %c, i64 %a, i64 %b, i64 %d, i64 %e) {
entry:
  br i1 %c, label %then, label %else
then:
  %x = call i64 @long(i64 %a, i64 %d)
  store i64 %x, ptr @out
  br label %join
else:
  %y = call i64 @long(i64 %b, i64 %e)
  %z = udiv i64 %y, 7
  store i64 %z, ptr @out
  br label %join
join:
  ret void
}

define void @saves_little(i1 %c, i64 %a, i64 %b, i64 %d, i64 %e) {
entry:
  br i1 %c, label %then, label %else
then:
  %x = call i64 @short(i64 %a, i64 %d)
  store i64 %x, ptr @out
  br label %join
else:
  %y = call i64 @short(i64 %b, i64 %e)
  %z = udiv i64 %y, 7
  store i64 %z, ptr @out
  br label %join
join:
  ret void
}
