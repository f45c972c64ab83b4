; Both operands of the division would have to be chosen, which is a branch for floating-point values: fusing would cost more than it saves.
define double @f(i1 %c, double %a, double %b, double %p, double %q) {
entry:
  br i1 %c, label %then, label %else
then:
  %x1 = fdiv double %a, %b
  %x3 = fmul double %x1, %p
  br label %join
else:
  %y1 = fdiv double %q, %p
  %y3 = fadd double %y1, 3.0
  br label %join
join:
  %r = phi double [ %x3, %then ], [ %y3, %else ]
  ret double %r
}
