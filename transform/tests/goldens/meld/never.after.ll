; meld left: never: subgraphs at ? and ?: a part of an arm holds what cannot be moved: a switch, an alloca, a convergent call, or one that may unwind

; Function Attrs: convergent
declare void @barrier() #0

define void @never(ptr %p, ptr %q, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %a = load volatile i32, ptr %p, align 4
  %a1 = load atomic i32, ptr %p seq_cst, align 4
  store i32 1, ptr %p, align 4
  br label %join

else:                                             ; preds = %entry
  %b = load volatile i32, ptr %q, align 4
  %b1 = load atomic i32, ptr %q seq_cst, align 4
  %b2 = load i32, ptr %q, align 4
  br label %join

join:                                             ; preds = %else, %then
  br i1 %c, label %then2, label %else2

then2:                                            ; preds = %join
  call void @barrier()
  store i32 2, ptr %p, align 4
  br label %end

else2:                                            ; preds = %join
  call void @barrier()
  store i32 2, ptr %q, align 4
  br label %end

end:                                              ; preds = %else2, %then2
  ret void
}

attributes #0 = { convergent }
