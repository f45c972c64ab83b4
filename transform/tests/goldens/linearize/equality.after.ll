; linearize taken: equality: control flow: 0 unstructured edges: 0 regions with 0 parts behind 0 guards, and 0 at the ends of loops; 0 switches are branches; +0 blocks, +2 comparisons, +0 branches, +2 choices, +0 phis; 2 floating-point comparisons for equality take one jump
target triple = "x86_64-pc-linux-gnu"

declare void @x()

define double @equality(float %a, float %b, double %c, double %d) {
  %same = fcmp oeq float %a, %b
  %1 = select i1 %same, i8 1, i8 0
  %2 = call i8 asm sideeffect "", "=r,0"(i8 %1)
  %3 = icmp ne i8 %2, 0
  %chosen = select i1 %3, double %c, double %d
  %masked = fcmp une double %c, %d
  %by.mask = select i1 %masked, double %chosen, double %d
  %4 = select i1 %masked, i8 1, i8 0
  %5 = call i8 asm sideeffect "", "=r,0"(i8 %4)
  %6 = icmp ne i8 %5, 0
  br i1 %6, label %x, label %y

x:                                                ; preds = %0
  call void @x()
  br label %y

y:                                                ; preds = %x, %0
  %less = fcmp olt float %a, %b
  br i1 %less, label %z, label %end

z:                                                ; preds = %y
  call void @x()
  br label %end

end:                                              ; preds = %z, %y
  ret double %by.mask
}
