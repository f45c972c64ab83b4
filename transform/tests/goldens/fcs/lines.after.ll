; fcs taken: pick: f at pick.c:3 and pick.c:5: the callee costs about 40 instructions, the fusion 4; guarded by the branch's condition; lanes that stay together lose 4 each time

declare i32 @f(i32)

define i32 @pick(i1 %c) !dbg !3 {
entry:
  br i1 %c, label %before.call, label %before.call1, !dbg !6

before.call:                                      ; preds = %entry
  br label %fused.f, !dbg !7

then:                                             ; preds = %fused.f
  br label %join, !dbg !7

before.call1:                                     ; preds = %entry
  br label %fused.f, !dbg !8

fused.f:                                          ; preds = %before.call1, %before.call
  %0 = phi i32 [ 1, %before.call ], [ 2, %before.call1 ]
  %1 = call i32 @f(i32 %0) #0, !dbg !9
  br i1 %c, label %then, label %else, !dbg !6

else:                                             ; preds = %fused.f
  br label %join, !dbg !8

join:                                             ; preds = %else, %then
  %r = phi i32 [ %1, %then ], [ %1, %else ]
  ret i32 %r, !dbg !10
}

attributes #0 = { noduplicate }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}

!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, isOptimized: false, runtimeVersion: 0, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "pick.c", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "pick", scope: null, file: !1, line: 1, type: !4, spFlags: DISPFlagDefinition, unit: !0)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 2, scope: !3)
!7 = !DILocation(line: 3, scope: !3)
!8 = !DILocation(line: 5, scope: !3)
!9 = !DILocation(line: 0, scope: !3)
!10 = !DILocation(line: 7, scope: !3)
