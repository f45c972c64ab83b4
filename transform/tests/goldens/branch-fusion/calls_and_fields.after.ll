; branch-fusion left: calls: arms at ? and ?: an arm calls f, and calls are left to fcs
; branch-fusion taken: fields: arms at ? and ?: 2 pairs; lanes that part need about 13 instructions, fused 10

declare i32 @f(i32)

define i32 @calls(i1 %c, i32 %a) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %x1 = sdiv i32 %a, 7
  %y1 = call i32 @f(i32 %x1)
  br label %join

else:                                             ; preds = %entry
  %x2 = sdiv i32 %a, 9
  %y2 = call i32 @f(i32 %x2)
  br label %join

join:                                             ; preds = %else, %then
  %r = phi i32 [ %y1, %then ], [ %y2, %else ]
  ret i32 %r
}

define i32 @fields(i1 %c, ptr %p) {
entry:
  br i1 %c, label %only.then, label %only.else

only.then:                                        ; preds = %entry
  %p1 = getelementptr { i32, i32, i32 }, ptr %p, i64 0, i32 1
  br label %next

only.else:                                        ; preds = %entry
  %p2 = getelementptr { i32, i32, i32 }, ptr %p, i64 0, i32 2
  br label %next

next:                                             ; preds = %only.else, %only.then
  %0 = phi ptr [ %p1, %only.then ], [ %p2, %only.else ]
  %v1 = load i32, ptr %0, align 4
  %r1 = udiv i32 %v1, 10
  br label %join

join:                                             ; preds = %next
  %1 = phi i32 [ %r1, %next ]
  ret i32 %1
}
