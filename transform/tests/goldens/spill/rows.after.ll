; spill taken: work: the registers: 8 registers; 2 stores to local memory, 2 to shared; uses: 2 loads from local memory, 0 of constants, 1 uniform from shared, 2 computed again, 1 both; 0 values cannot be spilled; 16 bytes shared

@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 0, ptr @__lockstep_shared_map, ptr null }]
@__lockstep_shared_is_mapped = weak global i8 0
@__lockstep_shared_message = linkonce_odr hidden constant [53 x i8] c"lockstep: mapping memory for values that warps share\00"

declare i32 @omp_get_thread_num()

declare void @use(i64)

define internal void @work(ptr %p, i64 %n) {
  %1 = alloca [16 x i8], align 16
  %2 = ptrtoint ptr %1 to i64
  %3 = sub i64 %2, 70368744177664
  %4 = call i64 asm sideeffect "", "=r,0"(i64 %3)
  %5 = inttoptr i64 %4 to ptr
  %6 = alloca i64, align 8
  %7 = alloca i64, align 8
  %tid = call i32 @omp_get_thread_num()
  %t = zext i32 %tid to i64
  %twelve = mul i64 %t, 12
  %8 = call i64 asm sideeffect "", "=r,0"(i64 %t)
  %9 = mul i64 %8, 12
  %10 = add i64 %9, 0
  %far = add i64 %10, %n
  %11 = getelementptr i8, ptr %5, i64 0
  %12 = call i64 asm sideeffect "", "=r,0"(i64 %t)
  %13 = mul i64 %12, 12
  %14 = sub i64 %far, %13
  store volatile i64 %14, ptr %11, align 4
  %seven = mul i64 %n, 7
  %15 = getelementptr i8, ptr %5, i64 8
  store volatile i64 %seven, ptr %15, align 4
  %own = load volatile i64, ptr %p, align 4
  store volatile i64 %own, ptr %6, align 4
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
  store volatile i64 %d6, ptr %7, align 4
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
  %16 = load volatile i64, ptr %7, align 4
  call void @use(i64 %16)
  call void @use(i64 %d7)
  call void @use(i64 %d8)
  %17 = call i64 asm sideeffect "", "=r,0"(i64 %t)
  %18 = mul i64 %17, 12
  %19 = add i64 %18, 0
  call void @use(i64 %19)
  %20 = getelementptr i8, ptr %5, i64 0
  %21 = load volatile i64, ptr %20, align 4
  %22 = call i64 asm sideeffect "", "=r,0"(i64 %t)
  %23 = mul i64 %22, 12
  %24 = add i64 %21, %23
  call void @use(i64 %24)
  %25 = getelementptr i8, ptr %5, i64 8
  %26 = load volatile i64, ptr %25, align 4
  call void @use(i64 %26)
  %27 = load volatile i64, ptr %6, align 4
  call void @use(i64 %27)
  ret void
}

define i32 @main(i32 %argc, ptr %argv) {
  %n = sext i32 %argc to i64
  call void @work(ptr %argv, i64 %n)
  ret i32 0
}

define linkonce_odr hidden void @__lockstep_shared_map() {
  %mapped = load i8, ptr @__lockstep_shared_is_mapped, align 1
  %first = icmp eq i8 %mapped, 0
  br i1 %first, label %map, label %end

map:                                              ; preds = %0
  store i8 1, ptr @__lockstep_shared_is_mapped, align 1
  %at = call ptr @mmap(ptr inttoptr (i64 65970696617984 to ptr), i64 4398047559680, i32 3, i32 1064994, i32 -1, i64 0)
  %number = ptrtoint ptr %at to i64
  %failed = icmp eq i64 %number, -1
  br i1 %failed, label %stop, label %end

stop:                                             ; preds = %map
  call void @perror(ptr @__lockstep_shared_message)
  call void @abort()
  unreachable

end:                                              ; preds = %map, %0
  ret void
}

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)

declare void @perror(ptr)

declare void @abort()
