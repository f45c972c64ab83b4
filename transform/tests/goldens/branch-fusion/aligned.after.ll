; branch-fusion taken: same: arms at ? and ?: 3 pairs save about 18 instructions and cost 0

define double @same(i1 %c, double %a, double %b, ptr %p) {
entry:
  %0 = select i1 %c, double %a, double %b
  %x1 = fmul nnan double %0, 3.000000e+00
  %1 = select i1 %c, double %b, double %a
  %y1 = fadd double %x1, %1
  %z1 = fdiv double %y1, %a
  br label %join

join:                                             ; preds = %entry
  %2 = phi double [ %z1, %entry ]
  ret double %2
}
