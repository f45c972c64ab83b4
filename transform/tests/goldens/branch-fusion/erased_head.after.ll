; branch-fusion taken: f: arms at ? and ?: 1 pairs; lanes that part need about 15 instructions, fused 8
; branch-fusion taken: f: arms at ? and ?: 1 pairs; lanes that part need about 24 instructions, fused 16

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
  %1 = phi i32 [ 3, %only.then ], [ 5, %only.else ]
  %2 = phi i32 [ %0, %only.then ], [ %o2, %only.else ]
  %x1 = sdiv i32 %2, %1
  br label %join

join:                                             ; preds = %next
  %3 = phi i32 [ %x1, %next ]
  ret i32 %3
}
