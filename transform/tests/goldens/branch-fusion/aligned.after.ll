; branch-fusion taken: same: arms at ? and ?: 1 pairs; lanes that part need about 9 instructions, fused 8

define double @same(i1 %c, double %a, double %b, ptr %p) {
entry:
  br i1 %c, label %only.then, label %only.else

only.then:                                        ; preds = %entry
  %x1 = fmul nnan double %a, 3.000000e+00
  %y1 = fadd double %x1, %b
  br label %next

only.else:                                        ; preds = %entry
  %x2 = fmul nnan double %b, 3.000000e+00
  %y2 = fadd double %x2, %a
  br label %next

next:                                             ; preds = %only.else, %only.then
  %0 = phi double [ %y1, %only.then ], [ %y2, %only.else ]
  %z1 = fdiv double %0, %a
  br label %join

join:                                             ; preds = %next
  %1 = phi double [ %z1, %next ]
  ret double %1
}
