; structurizecfg taken: f: control flow: 0 copies forward, 0 backward, 0 loops cut; 4 blocks became 7, 9 instructions 15

declare i1 @one(i32)

declare i1 @two(i32)

define i32 @f(i1 %c, i32 %n) {
entry:
  %k = mul i32 %n, 3
  br label %irr.guard

Flow:                                             ; preds = %b, %irr.guard
  %0 = phi i1 [ true, %b ], [ undef, %irr.guard ]
  %1 = phi i32 [ %y.moved, %b ], [ undef, %irr.guard ]
  %2 = phi i32 [ %y1, %b ], [ undef, %irr.guard ]
  %3 = phi i1 [ %t.inv, %b ], [ true, %irr.guard ]
  %4 = phi i1 [ false, %b ], [ true, %irr.guard ]
  br i1 %4, label %a, label %Flow1

a:                                                ; preds = %Flow
  %x1 = add i32 %x.moved, %k
  %s = call i1 @one(i32 %x1)
  %s.inv = xor i1 %s, true
  br label %Flow1

b:                                                ; preds = %irr.guard
  %y1 = xor i32 %y.moved, 5
  %t = call i1 @two(i32 %y1)
  %t.inv = xor i1 %t, true
  br label %Flow

Flow1:                                            ; preds = %a, %Flow
  %5 = phi i1 [ false, %a ], [ %0, %Flow ]
  %6 = phi i32 [ %x.moved, %a ], [ %2, %Flow ]
  %7 = phi i32 [ %x1, %a ], [ %1, %Flow ]
  %8 = phi i32 [ %x1, %a ], [ %2, %Flow ]
  %9 = phi i1 [ %s.inv, %a ], [ %3, %Flow ]
  br i1 %9, label %out, label %irr.guard

out:                                              ; preds = %Flow1
  ret i32 %8

irr.guard:                                        ; preds = %Flow1, %entry
  %y.moved = phi i32 [ %k, %entry ], [ %7, %Flow1 ]
  %x.moved = phi i32 [ %n, %entry ], [ %6, %Flow1 ]
  %Guard.a = phi i1 [ %c, %entry ], [ %5, %Flow1 ]
  %Guard.a.inv = xor i1 %Guard.a, true
  br i1 %Guard.a.inv, label %b, label %Flow
}
