; A branch inside of an arm is told of, the one around it is not.
define i32 @f(i1 %a, i1 %b) {
entry:
  br i1 %a, label %inside, label %end
inside:
  br i1 %b, label %deep, label %end
deep:
  br label %end
end:
  %r = phi i32 [ 1, %entry ], [ 2, %inside ], [ 3, %deep ]
  ret i32 %r
}
