; structurizecfg taken: jumps: control flow: 0 copies forward, 0 backward, 0 loops cut; 4 blocks became 5, 6 instructions 8

declare void @x()

declare void @y()

define void @jumps(i1 %a, i1 %b) {
  %a.inv = xor i1 %a, true
  br i1 %a, label %first, label %Flow

first:                                            ; preds = %0
  call void @x()
  br label %Flow

Flow:                                             ; preds = %first, %0
  %1 = phi i1 [ %b, %first ], [ %a.inv, %0 ]
  br i1 %1, label %second, label %out

second:                                           ; preds = %Flow
  call void @y()
  br label %out

out:                                              ; preds = %second, %Flow
  ret void
}

; Function Attrs: optsize
define void @small() #0 {
  ret void
}

; Function Attrs: minsize optsize
define void @smaller() #1 {
  ret void
}

; Function Attrs: alwaysinline
define void @inlined() #2 {
  ret void
}

attributes #0 = { optsize }
attributes #1 = { minsize optsize }
attributes #2 = { alwaysinline }
