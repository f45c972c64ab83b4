
declare i1 @test(i32)

define i32 @f(i1 %c, i32 %n) {
entry:
  br i1 %c, label %head, label %out

head:                                             ; preds = %head, %entry
  %i = phi i32 [ 0, %entry ], [ %j, %head ]
  %j = add i32 %i, 1
  %more = call i1 @test(i32 %j)
  br i1 %more, label %head, label %behind

behind:                                           ; preds = %head
  br label %out

out:                                              ; preds = %behind, %entry
  %r = phi i32 [ %n, %entry ], [ %j, %behind ]
  ret i32 %r
}
