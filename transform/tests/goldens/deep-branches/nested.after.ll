; deep-branches left: f: a branch at ?: 1 branches decide about it

define i32 @f(i1 %a, i1 %b) {
entry:
  br i1 %a, label %inside, label %end

inside:                                           ; preds = %entry
  br i1 %b, label %deep, label %end

deep:                                             ; preds = %inside
  br label %end

end:                                              ; preds = %deep, %inside, %entry
  %r = phi i32 [ 1, %entry ], [ 2, %inside ], [ 3, %deep ]
  ret i32 %r
}
