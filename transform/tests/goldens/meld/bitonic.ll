; Two ifs that compare the other way round become one: the operands of the comparison are chosen, and nothing else.
define void @swap(ptr %at, ptr %with, i1 %up) {
entry:
  br i1 %up, label %then, label %else

then:
  %a = load i32, ptr %at, align 4
  %b = load i32, ptr %with, align 8
  %less = icmp slt i32 %a, %b
  br i1 %less, label %swap, label %join

swap:
  store i32 %b, ptr %at, align 4
  store i32 %a, ptr %with, align 8
  br label %join

else:
  %c = load i32, ptr %at, align 4
  %d = load i32, ptr %with, align 4
  %more = icmp sgt i32 %c, %d
  br i1 %more, label %swap2, label %join

swap2:
  store i32 %d, ptr %at, align 4
  store i32 %c, ptr %with, align 4
  br label %join

join:
  ret void
}
