; linearize left: throws: control flow at ?: a call may unwind into a handler of exceptions
; linearize left: address: control flow at ?: the address of a block is taken
; linearize left: twice: control flow at ?: the callee returns twice
; linearize left: jump: control flow at ?: a call must be a jump at the end of its function

declare void @x()

declare void @may_throw()

; Function Attrs: returns_twice
declare i32 @setjmp(ptr) #0

declare i32 @personality(...)

define void @throws(i1 %a, i1 %b) personality ptr @personality {
entry:
  br i1 %a, label %x, label %second

second:                                           ; preds = %entry
  br i1 %b, label %x, label %y

x:                                                ; preds = %second, %entry
  invoke void @may_throw()
          to label %y unwind label %handler

handler:                                          ; preds = %x
  %e = landingpad { ptr, i32 }
          cleanup
  resume { ptr, i32 } %e

y:                                                ; preds = %x, %second
  ret void
}

define void @address(i1 %a, i1 %b, ptr %p) {
entry:
  br i1 %a, label %x, label %second

second:                                           ; preds = %entry
  br i1 %b, label %x, label %y

x:                                                ; preds = %second, %entry
  indirectbr ptr %p, [label %y, label %z]

z:                                                ; preds = %x
  call void @x()
  br label %y

y:                                                ; preds = %z, %x, %second
  ret void
}

define i32 @twice(i1 %a, i1 %b, ptr %p) {
entry:
  %s = call i32 @setjmp(ptr %p) #0
  br i1 %a, label %x, label %second

second:                                           ; preds = %entry
  br i1 %b, label %x, label %y

x:                                                ; preds = %second, %entry
  call void @x()
  br label %y

y:                                                ; preds = %x, %second
  ret i32 %s
}

define void @jump(i1 %a, i1 %b, ptr %p) {
entry:
  br i1 %a, label %x, label %second

second:                                           ; preds = %entry
  br i1 %b, label %x, label %y

x:                                                ; preds = %second, %entry
  musttail call void @jump(i1 %b, i1 %a, ptr %p)
  ret void

y:                                                ; preds = %second
  ret void
}

attributes #0 = { returns_twice }
