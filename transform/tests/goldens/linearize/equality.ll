; On x86-64 equality of floating-point numbers is one jump, as the same in a register.
target triple = "x86_64-pc-linux-gnu"
declare void @x()

define double @equality(float %a, float %b, double %c, double %d) {
  %same = fcmp oeq float %a, %b
  %chosen = select i1 %same, double %c, double %d
  %masked = fcmp une double %c, %d
  %by.mask = select i1 %masked, double %chosen, double %d
  br i1 %masked, label %x, label %y
x:
  call void @x()
  br label %y
y:
  %less = fcmp olt float %a, %b
  br i1 %less, label %z, label %end
z:
  call void @x()
  br label %end
end:
  ret double %by.mask
}
