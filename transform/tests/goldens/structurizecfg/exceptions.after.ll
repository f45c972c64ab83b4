; structurizecfg left: handles: control flow at ?: a call may unwind into a handler of exceptions
; structurizecfg taken: other: control flow: 0 copies forward, 0 backward, 0 loops cut; 4 blocks became 5, 5 instructions 7

declare void @throws()

declare void @x()

declare i32 @personality(...)

define void @handles(i1 %a, i1 %b) personality ptr @personality {
  br i1 %a, label %x, label %also

also:                                             ; preds = %0
  br i1 %b, label %x, label %y

x:                                                ; preds = %also, %0
  invoke void @throws()
          to label %y unwind label %handler

y:                                                ; preds = %x, %also
  ret void

handler:                                          ; preds = %x
  %pad = landingpad { ptr, i32 }
          cleanup
  resume { ptr, i32 } %pad
}

define void @other(i1 %a, i1 %b) {
  %a.inv = xor i1 %a, true
  br i1 %a.inv, label %also, label %Flow

also:                                             ; preds = %0
  br label %Flow

Flow:                                             ; preds = %also, %0
  %1 = phi i1 [ %b, %also ], [ %a, %0 ]
  br i1 %1, label %x, label %y

x:                                                ; preds = %Flow
  call void @x()
  br label %y

y:                                                ; preds = %x, %Flow
  ret void
}
