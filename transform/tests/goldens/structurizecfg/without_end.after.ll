; structurizecfg taken: never: control flow: 0 copies forward, 0 backward, 0 loops cut; 3 blocks became 5, 5 instructions 9
; structurizecfg taken: trap: control flow: 0 copies forward, 0 backward, 0 loops cut; 5 blocks became 9, 8 instructions 15

declare i1 @one()

declare void @stop()

define void @never(i1 %c) {
entry:
  br label %irr.guard

Flow:                                             ; preds = %b, %irr.guard
  %0 = phi i1 [ %t, %b ], [ undef, %irr.guard ]
  %1 = phi i1 [ false, %b ], [ true, %irr.guard ]
  br i1 %1, label %a, label %irr.guard

a:                                                ; preds = %Flow
  %s = call i1 @one()
  %s.inv = xor i1 %s, true
  br label %irr.guard

b:                                                ; preds = %irr.guard
  %t = call i1 @one()
  br label %Flow

irr.guard:                                        ; preds = %Flow, %entry, %a
  %Guard.a = phi i1 [ %s.inv, %a ], [ %c, %entry ], [ %0, %Flow ]
  %Guard.a.inv = xor i1 %Guard.a, true
  br i1 %Guard.a.inv, label %b, label %Flow
}

define void @trap(i1 %c) {
entry:
  br label %head

head:                                             ; preds = %Flow1, %entry
  %s = call i1 @one()
  %s.inv = xor i1 %s, true
  br i1 %s.inv, label %goes, label %Flow1

Flow:                                             ; preds = %out, %loop.exit.guard
  %0 = phi i1 [ false, %out ], [ true, %loop.exit.guard ]
  br i1 %0, label %fails, label %end

fails:                                            ; preds = %Flow
  call void @stop()
  br label %end

goes:                                             ; preds = %head
  %t = call i1 @one()
  %t.inv = xor i1 %t, true
  br label %Flow1

out:                                              ; preds = %loop.exit.guard
  br label %Flow

end:                                              ; preds = %fails, %Flow
  ret void

Flow1:                                            ; preds = %goes, %head
  %1 = phi i1 [ false, %goes ], [ true, %head ]
  %2 = phi i1 [ %t.inv, %goes ], [ true, %head ]
  br i1 %2, label %loop.exit.guard, label %head

loop.exit.guard:                                  ; preds = %Flow1
  %Guard.fails.inv = xor i1 %1, true
  br i1 %Guard.fails.inv, label %out, label %Flow
}
