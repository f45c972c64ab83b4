; branch-fusion taken: rest: arms at ? and ?: 2 pairs; lanes that part need about 35 instructions, fused 21

define i32 @rest(i1 %c, i32 %a, i32 %b, ptr %p) {
entry:
  %0 = select i1 %c, i32 %a, i32 %b
  %x1 = sdiv i32 %0, 7
  br i1 %c, label %only.then, label %next

only.then:                                        ; preds = %entry
  %only1 = xor i32 %x1, 5
  store i32 %only1, ptr %p, align 4
  br label %next

next:                                             ; preds = %entry, %only.then
  %y1 = srem i32 %x1, 11
  br label %join

join:                                             ; preds = %next
  %1 = phi i32 [ %y1, %next ]
  ret i32 %1
}
