; branch-fusion left: f: arms at ? and ?: no profit: 1 pairs; lanes that part need about 7 instructions, fused 10

define double @f(i1 %c, double %a, double %b, double %p, double %q) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %x1 = fdiv double %a, %b
  %x3 = fmul double %x1, %p
  br label %join

else:                                             ; preds = %entry
  %y1 = fdiv double %q, %p
  %y3 = fadd double %y1, 3.000000e+00
  br label %join

join:                                             ; preds = %else, %then
  %r = phi double [ %x3, %then ], [ %y3, %else ]
  ret double %r
}
