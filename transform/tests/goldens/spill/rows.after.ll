; spill taken: work: the registers: 8 registers; 2 stores to local memory, 2 to shared; uses: 2 loads from local memory, 0 of constants, 1 uniform from shared, 2 computed again, 1 both; 0 values cannot be spilled; 16 bytes shared

@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 0, ptr @__lockstep_shared_map, ptr null }]
@__lockstep_shared_distances = linkonce_odr hidden global [32 x i64] zeroinitializer
@__lockstep_shared_message = linkonce_odr hidden constant [194 x i8] c"lockstep: warning: mapping memory for values that warps share failed, since its place is taken or too little memory is allowed; each thread keeps them in its own, which a replay counts as local\0A"

declare i32 @omp_get_thread_num()

declare void @use(i64)

define internal void @work(ptr %p, i64 %n) {
  %1 = alloca [16 x i8], align 16
  %2 = ptrtoint ptr %1 to i64
  %3 = call i64 asm sideeffect "", "=r,0"(i64 %2)
  %4 = lshr i64 %3, 39
  %5 = and i64 %4, 248
  %6 = getelementptr i8, ptr @__lockstep_shared_distances, i64 %5
  %7 = load i64, ptr %6, align 4
  %8 = sub i64 %2, %7
  %9 = call i64 asm sideeffect "", "=r,0"(i64 %8)
  %10 = inttoptr i64 %9 to ptr
  %11 = alloca i64, align 8
  %12 = alloca i64, align 8
  %tid = call i32 @omp_get_thread_num()
  %t = zext i32 %tid to i64
  %twelve = mul i64 %t, 12
  %13 = call i64 asm sideeffect "", "=r,0"(i64 %t)
  %14 = mul i64 %13, 12
  %15 = add i64 %14, 0
  %far = add i64 %15, %n
  %16 = getelementptr i8, ptr %10, i64 0
  %17 = call i64 asm sideeffect "", "=r,0"(i64 %t)
  %18 = mul i64 %17, 12
  %19 = sub i64 %far, %18
  store volatile i64 %19, ptr %16, align 4
  %seven = mul i64 %n, 7
  %20 = getelementptr i8, ptr %10, i64 8
  store volatile i64 %seven, ptr %20, align 4
  %own = load volatile i64, ptr %p, align 4
  store volatile i64 %own, ptr %11, align 4
  %a0 = getelementptr i64, ptr %p, i64 0
  %d0 = load volatile i64, ptr %a0, align 4
  %a1 = getelementptr i64, ptr %p, i64 1
  %d1 = load volatile i64, ptr %a1, align 4
  %a2 = getelementptr i64, ptr %p, i64 2
  %d2 = load volatile i64, ptr %a2, align 4
  %a3 = getelementptr i64, ptr %p, i64 3
  %d3 = load volatile i64, ptr %a3, align 4
  %a4 = getelementptr i64, ptr %p, i64 4
  %d4 = load volatile i64, ptr %a4, align 4
  %a5 = getelementptr i64, ptr %p, i64 5
  %d5 = load volatile i64, ptr %a5, align 4
  %a6 = getelementptr i64, ptr %p, i64 6
  %d6 = load volatile i64, ptr %a6, align 4
  store volatile i64 %d6, ptr %12, align 4
  %a7 = getelementptr i64, ptr %p, i64 7
  %d7 = load volatile i64, ptr %a7, align 4
  %a8 = getelementptr i64, ptr %p, i64 8
  %d8 = load volatile i64, ptr %a8, align 4
  call void @use(i64 %d0)
  call void @use(i64 %d1)
  call void @use(i64 %d2)
  call void @use(i64 %d3)
  call void @use(i64 %d4)
  call void @use(i64 %d5)
  %21 = load volatile i64, ptr %12, align 4
  call void @use(i64 %21)
  call void @use(i64 %d7)
  call void @use(i64 %d8)
  %22 = call i64 asm sideeffect "", "=r,0"(i64 %t)
  %23 = mul i64 %22, 12
  %24 = add i64 %23, 0
  call void @use(i64 %24)
  %25 = getelementptr i8, ptr %10, i64 0
  %26 = load volatile i64, ptr %25, align 4
  %27 = call i64 asm sideeffect "", "=r,0"(i64 %t)
  %28 = mul i64 %27, 12
  %29 = add i64 %26, %28
  call void @use(i64 %29)
  %30 = getelementptr i8, ptr %10, i64 8
  %31 = load volatile i64, ptr %30, align 4
  call void @use(i64 %31)
  %32 = load volatile i64, ptr %11, align 4
  call void @use(i64 %32)
  ret void
}

define i32 @main(i32 %argc, ptr %argv) {
  %n = sext i32 %argc to i64
  call void @work(ptr %argv, i64 %n)
  ret i32 0
}

define linkonce_odr hidden void @__lockstep_shared_map() {
  %last = getelementptr [32 x i64], ptr @__lockstep_shared_distances, i64 0, i64 31
  %known = load i64, ptr %last, align 4
  %first = icmp eq i64 %known, 0
  br i1 %first, label %map, label %end

map:                                              ; preds = %0
  %at = call i64 asm sideeffect "syscall", "={ax},{ax},{di},{si},{dx},{r10},{r8},{r9},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"(i64 9, i64 65970696617984, i64 4398047559680, i64 3, i64 1064994, i64 -1, i64 0)
  %mapped = icmp eq i64 %at, 65970696617984
  br i1 %mapped, label %mark, label %failed

mark:                                             ; preds = %map
  store atomic volatile i64 9165229872504335361, ptr inttoptr (i64 65970696617984 to ptr) release, align 8
  br label %use

failed:                                           ; preds = %map
  %elsewhere = icmp ult i64 %at, -4095
  br i1 %elsewhere, label %back, label %look

back:                                             ; preds = %failed
  %gone = call i64 asm sideeffect "syscall", "={ax},{ax},{di},{si},{dx},{r10},{r8},{r9},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"(i64 11, i64 %at, i64 4398047559680, i64 0, i64 0, i64 0, i64 0)
  br label %tell

look:                                             ; preds = %rest, %failed
  %turn = phi i64 [ 0, %failed ], [ %next, %rest ]
  %answer = call i64 asm sideeffect "syscall", "={ax},{ax},{di},{si},{dx},{r10},{r8},{r9},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"(i64 21, i64 65970696617984, i64 0, i64 0, i64 0, i64 0, i64 0)
  %readable = icmp eq i64 %answer, -2
  br i1 %readable, label %read, label %tell

read:                                             ; preds = %look
  %found = load atomic volatile i64, ptr inttoptr (i64 65970696617984 to ptr) acquire, align 8
  %ours = icmp eq i64 %found, 9165229872504335361
  br i1 %ours, label %use, label %other

other:                                            ; preds = %read
  %next = add i64 %turn, 1
  %blank = icmp eq i64 %found, 0
  %soon = icmp ult i64 %next, 1000
  %waits = and i1 %blank, %soon
  br i1 %waits, label %rest, label %tell

rest:                                             ; preds = %other
  %rested = call i64 asm sideeffect "syscall", "={ax},{ax},{di},{si},{dx},{r10},{r8},{r9},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"(i64 24, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0)
  br label %look

tell:                                             ; preds = %other, %look, %back
  %text = ptrtoint ptr @__lockstep_shared_message to i64
  %written = call i64 asm sideeffect "syscall", "={ax},{ax},{di},{si},{dx},{r10},{r8},{r9},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"(i64 1, i64 2, i64 %text, i64 194, i64 0, i64 0, i64 0)
  br label %end

use:                                              ; preds = %read, %mark
  store i64 70368744177664, ptr %last, align 4
  br label %end

end:                                              ; preds = %use, %tell, %0
  ret void
}
