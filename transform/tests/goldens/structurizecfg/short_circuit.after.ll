; structurizecfg taken: f: control flow: 0 copies forward, 0 backward, 0 loops cut; 4 blocks became 5, 6 instructions 8

declare void @x(i32)

define void @f(i1 %a, i1 %b, i32 %n) {
entry:
  %a.inv = xor i1 %a, true
  br i1 %a.inv, label %second, label %Flow

second:                                           ; preds = %entry
  %m = add i32 %n, 1
  br label %Flow

Flow:                                             ; preds = %second, %entry
  %0 = phi i32 [ %m, %second ], [ %n, %entry ]
  %1 = phi i1 [ %b, %second ], [ %a, %entry ]
  br i1 %1, label %x, label %y

x:                                                ; preds = %Flow
  call void @x(i32 %0)
  br label %y

y:                                                ; preds = %x, %Flow
  ret void
}
