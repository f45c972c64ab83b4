; fcs left: unwinding: work at ? and ?: a call may unwind into a handler of exceptions
; fcs left: behind: work at ? and ?: one call stands after the join, which the other call's path reaches too
; fcs left: left.c: 3 calls of functions that are called more than once: the callee does not return, so nothing is gained

declare void @work(i32)

; Function Attrs: noreturn
declare void @fail(i32) #0

declare i32 @personality(...)

define void @unwinding(i1 %c) personality ptr @personality {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  invoke void @work(i32 1)
          to label %join unwind label %handler

else:                                             ; preds = %entry
  invoke void @work(i32 2)
          to label %join unwind label %handler

join:                                             ; preds = %else, %then
  ret void

handler:                                          ; preds = %else, %then
  %pad = landingpad { ptr, i32 }
          cleanup
  resume { ptr, i32 } %pad
}

define void @behind(i1 %c) {
entry:
  br i1 %c, label %then, label %join

then:                                             ; preds = %entry
  call void @work(i32 1)
  br label %join

join:                                             ; preds = %then, %entry
  call void @work(i32 2)
  ret void
}

define void @endless(i32 %c) {
entry:
  switch i32 %c, label %one [
    i32 1, label %two
    i32 2, label %three
  ]

one:                                              ; preds = %entry
  call void @fail(i32 1)
  unreachable

two:                                              ; preds = %entry
  call void @fail(i32 2)
  unreachable

three:                                            ; preds = %entry
  call void @fail(i32 3)
  unreachable
}

attributes #0 = { noreturn }
