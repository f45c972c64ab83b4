; split-nodes taken: f: control flow: 1 copies forward, 0 backward, 0 loops cut; 4 blocks became 5, 6 instructions 8

declare void @x(i32)

define void @f(i1 %a, i1 %b, i32 %n) {
entry:
  br i1 %a, label %x, label %second

second:                                           ; preds = %entry
  %m = add i32 %n, 1
  br i1 %b, label %x.copy, label %y

x:                                                ; preds = %entry
  call void @x(i32 %n)
  br label %y

y:                                                ; preds = %x.copy, %x, %second
  ret void

x.copy:                                           ; preds = %second
  call void @x(i32 %m)
  br label %y
}
