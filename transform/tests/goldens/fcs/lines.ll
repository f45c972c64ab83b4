; The fused call has the line of both calls where it is one, else line 0, which is no line.
declare i32 @f(i32)

define i32 @pick(i1 %c) !dbg !3 {
entry:
  br i1 %c, label %then, label %else, !dbg !5
then:
  %r1 = call i32 @f(i32 1), !dbg !6
  br label %join, !dbg !6
else:
  %r2 = call i32 @f(i32 2), !dbg !7
  br label %join, !dbg !7
join:
  %r = phi i32 [ %r1, %then ], [ %r2, %else ]
  ret i32 %r, !dbg !8
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "pick.c", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "pick", file: !1, line: 1, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !{})
!5 = !DILocation(line: 2, scope: !3)
!6 = !DILocation(line: 3, scope: !3)
!7 = !DILocation(line: 5, scope: !3)
!8 = !DILocation(line: 7, scope: !3)
