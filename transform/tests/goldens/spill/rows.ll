; Of values that live longest, %seven (uniform) and %far (affine, base unknown) share memory, %twelve is computed again, %own is local.
declare i32 @omp_get_thread_num()
declare void @use(i64)

define internal void @work(ptr %p, i64 %n) {
  %tid = call i32 @omp_get_thread_num()
  %t = zext i32 %tid to i64
  %twelve = mul i64 %t, 12
  %far = add i64 %twelve, %n
  %seven = mul i64 %n, 7
  %own = load volatile i64, ptr %p
  %a0 = getelementptr i64, ptr %p, i64 0
  %d0 = load volatile i64, ptr %a0
  %a1 = getelementptr i64, ptr %p, i64 1
  %d1 = load volatile i64, ptr %a1
  %a2 = getelementptr i64, ptr %p, i64 2
  %d2 = load volatile i64, ptr %a2
  %a3 = getelementptr i64, ptr %p, i64 3
  %d3 = load volatile i64, ptr %a3
  %a4 = getelementptr i64, ptr %p, i64 4
  %d4 = load volatile i64, ptr %a4
  %a5 = getelementptr i64, ptr %p, i64 5
  %d5 = load volatile i64, ptr %a5
  %a6 = getelementptr i64, ptr %p, i64 6
  %d6 = load volatile i64, ptr %a6
  %a7 = getelementptr i64, ptr %p, i64 7
  %d7 = load volatile i64, ptr %a7
  %a8 = getelementptr i64, ptr %p, i64 8
  %d8 = load volatile i64, ptr %a8
  call void @use(i64 %d0)
  call void @use(i64 %d1)
  call void @use(i64 %d2)
  call void @use(i64 %d3)
  call void @use(i64 %d4)
  call void @use(i64 %d5)
  call void @use(i64 %d6)
  call void @use(i64 %d7)
  call void @use(i64 %d8)
  call void @use(i64 %twelve)
  call void @use(i64 %far)
  call void @use(i64 %seven)
  call void @use(i64 %own)
  ret void
}

define i32 @main(i32 %argc, ptr %argv) {
  %n = sext i32 %argc to i64
  call void @work(ptr %argv, i64 %n)
  ret i32 0
}
