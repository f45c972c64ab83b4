; Arms that do alike things to different values become one row of instructions with selects.
define double @same(i1 %c, double %a, double %b, ptr %p) {
entry:
  br i1 %c, label %then, label %else
then:
  %x1 = fmul nnan double %a, 3.0
  %y1 = fadd double %x1, %b
  %z1 = fdiv double %y1, %a
  br label %join
else:
  %x2 = fmul nnan double %b, 3.0
  %y2 = fadd double %x2, %a
  %z2 = fdiv double %y2, %a
  br label %join
join:
  %r = phi double [ %z1, %then ], [ %z2, %else ]
  ret double %r
}
