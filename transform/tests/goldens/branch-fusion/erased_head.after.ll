; branch-fusion taken: f: arms at ? and ?: 1 pairs save about 19 instructions and cost 0
; branch-fusion taken: f: arms at ? and ?: 1 pairs save about 19 instructions and cost 0

define i32 @f(i1 %c, i1 %d, i32 %a, i32 %b) {
entry:
  br label %outer

outer:                                            ; preds = %entry
  br i1 %c, label %only.then, label %only.else

only.then:                                        ; preds = %outer
  %0 = select i1 %d, i32 %a, i32 %b
  br label %next

only.else:                                        ; preds = %outer
  %o1 = sdiv i32 %a, 5
  %o2 = add i32 %o1, %b
  br label %next

next:                                             ; preds = %only.else, %only.then
  %.01 = phi i32 [ %0, %only.then ], [ undef, %only.else ]
  %.0 = phi i32 [ undef, %only.then ], [ %o2, %only.else ]
  %1 = select i1 %c, i32 %.01, i32 %.0
  %2 = select i1 %c, i32 3, i32 5
  %x1 = sdiv i32 %1, %2
  br label %join

join:                                             ; preds = %next
  %3 = phi i32 [ %x1, %next ]
  ret i32 %3
}
