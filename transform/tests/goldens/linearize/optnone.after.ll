
declare void @x()

; Function Attrs: noinline optnone
define void @f(i1 %a, i1 %b) #0 {
entry:
  br i1 %a, label %x, label %second

second:                                           ; preds = %entry
  br i1 %b, label %x, label %y

x:                                                ; preds = %second, %entry
  call void @x()
  br label %y

y:                                                ; preds = %x, %second
  ret void
}

attributes #0 = { noinline optnone }
