; A function whose control flow is unstructured, beside others that are small, or inlined always: these stay so.

declare void @x()
declare void @y()

define void @jumps(i1 %a, i1 %b) {
  br i1 %a, label %first, label %second
first:
  call void @x()
  br i1 %b, label %second, label %out
second:
  call void @y()
  br label %out
out:
  ret void
}

define void @small() optsize {
  ret void
}

define void @smaller() minsize optsize {
  ret void
}

define void @inlined() alwaysinline {
  ret void
}
