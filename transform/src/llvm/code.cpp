// Code generation and bitcode as clang has them done, for `code.rs` and `module.rs`. LLVM's C interface makes target
// machines too, but cannot set the options by which clang's object files differ from its default (constructors in
// .init_array, the table of addresses that are taken, call sites in debug information, sections per function, options
// of the assembler), and writes bitcode without the order in which values are used, which decides ties in code
// generation. For `attributes.rs` there is what two instructions promise together: the C interface can add promises about
// floating point, but not take one away, and does not know how metadata of each kind are joined.
//
// What clang 19 does is in `initTargetOptions` and `RunCodegenPipeline` of clang/lib/CodeGen/BackendUtil.cpp. Tests
// compare the object files byte by byte.

#include "llvm-c/Core.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

extern "C" {

// The same as `Raw` in code.rs.
struct LockstepCode {
  const char *processor;
  const char *features;
  const char *const *includes;
  size_t include_count;
  unsigned level;
  bool position_independent;
  bool function_sections;
  bool data_sections;
  bool unique_section_names;
  bool address_significance;
  bool init_array;
  bool call_sites;
  bool relax_all;
};

// A well-formed module as bitcode, with the order of uses.
LLVMMemoryBufferRef lockstep_bitcode(LLVMModuleRef raw) {
  SmallVector<char, 0> bitcode;
  raw_svector_ostream stream(bitcode);
  WriteBitcodeToFile(*unwrap(raw), stream, true);
  return LLVMCreateMemoryBufferWithMemoryRangeCopy(bitcode.data(), bitcode.size(), "bitcode");
}

// Sets options of LLVM's command line, for this process; false where LLVM refuses them.
bool lockstep_set_options(int count, const char *const *words) {
  return cl::ParseCommandLineOptions(count, words, "", &nulls());
}

// Whether a value is the address of an error result of Swift's convention.
bool lockstep_is_swift_error(LLVMValueRef value) { return unwrap(value)->isSwiftError(); }

// Leaves to an instruction that stands for another of its opcode too only the flags (nuw, nsw, exact, fast-math, inbounds
// and their like) that both have.
void lockstep_intersect_flags(LLVMValueRef kept, LLVMValueRef other) {
  cast<Instruction>(unwrap(kept))->andIRFlags(unwrap(other));
}

// Leaves to an instruction that stands for another too the metadata that hold for both: tags of aliases and ranges are
// widened, others must be the same. LLVM takes both to access one place, so that a group of invariant accesses is the
// group of both; here they need not.
void lockstep_combine_metadata(LLVMValueRef raw, LLVMValueRef other) {
  auto *kept = cast<Instruction>(unwrap(raw));
  auto *from = cast<Instruction>(unwrap(other));
  MDNode *group = kept->getMetadata(LLVMContext::MD_invariant_group);
  bool same = group == from->getMetadata(LLVMContext::MD_invariant_group);
  combineMetadataForCSE(kept, from, true);
  kept->setMetadata(LLVMContext::MD_invariant_group, same ? group : nullptr);
}

// Drops what debug information says of variables in a block without instructions. A store elsewhere can share its
// number with an assignment noted here, and whoever follows that must not reach a block that is in no function.
void lockstep_drop_debug_records(LLVMBasicBlockRef raw) {
  BasicBlock *block = unwrap(raw);
  if (DbgMarker *records = block->getTrailingDbgRecords()) {
    block->deleteTrailingDbgRecords();
    records->eraseFromParent();
  }
}

// An object file of a module with a target triple, which is changed by it; null where LLVM makes none.
LLVMMemoryBufferRef lockstep_object(LLVMModuleRef raw, const LockstepCode *code) {
  Module &module = *unwrap(raw);
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(module.getTargetTriple(), error);
  if (!target)
    return nullptr;

  TargetOptions options;
  options.ThreadModel = ThreadModel::POSIX;
  options.AllowFPOpFusion = FPOpFusion::Standard;
  options.UseInitArray = code->init_array;
  options.FunctionSections = code->function_sections;
  options.DataSections = code->data_sections;
  options.UniqueSectionNames = code->unique_section_names;
  options.EmitAddrsig = code->address_significance;
  options.EmitCallSiteInfo = code->call_sites;
  options.DebuggerTuning = DebuggerKind::GDB;
  options.MCOptions.MCRelaxAll = code->relax_all;
  options.MCOptions.MCUseDwarfDirectory = MCTargetOptions::EnableDwarfDirectory;
  for (size_t i = 0; i < code->include_count; ++i)
    options.MCOptions.IASSearchPaths.push_back(code->includes[i]);

  static const CodeGenOptLevel levels[] = {CodeGenOptLevel::None, CodeGenOptLevel::Less, CodeGenOptLevel::Default,
                                           CodeGenOptLevel::Aggressive};
  if (code->level >= sizeof levels / sizeof *levels)
    return nullptr;
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      module.getTargetTriple(), code->processor, code->features, options,
      code->position_independent ? Reloc::PIC_ : Reloc::Static, std::nullopt, levels[code->level]));
  if (!machine || machine->createDataLayout() != module.getDataLayout())
    return nullptr;

  SmallVector<char, 0> object;
  raw_svector_ostream stream(object);
  TargetLibraryInfoImpl library(machine->getTargetTriple());
  legacy::PassManager passes;
  passes.add(createTargetTransformInfoWrapperPass(machine->getTargetIRAnalysis()));
  passes.add(new TargetLibraryInfoWrapperPass(library));
  if (machine->addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile, true))
    return nullptr;
  passes.run(module);
  return LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), "object");
}
}
