// What LLVM asks of a plug-in: the names of passes in a list of passes, and a place in the pipeline of optimisers. Both
// have no C interface.

#include "llvm-c/Core.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"

#include <cstdlib>
#include <cstring>
#include <string>

using namespace llvm;

// In lib.rs. The first says whether this is one of our passes; the second ends the process where a name or a parameter is
// wrong; the third runs passes over a module, and says whether it may have changed.
extern "C" bool lockstep_knows(const char *passes, size_t length);
extern "C" void lockstep_check(const char *passes, size_t length);
extern "C" bool lockstep_run(LLVMModuleRef module, const char *passes, size_t length, bool whole_arms);

namespace {

struct Passes : PassInfoMixin<Passes> {
  std::string names;
  bool wholeArms;

  explicit Passes(StringRef names, bool wholeArms = false) : names(names), wholeArms(wholeArms) {}

  PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
    bool changed = lockstep_run(wrap(&module), names.data(), names.size(), wholeArms);
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }

  // Code that is not to be optimised is left by the passes themselves.
  static bool isRequired() { return true; }
};

// Whether the optimiser was told to leave what both sides of a branch end with in them: -mllvm -sink-common-insts=false.
bool leavesArmsWhole() {
  auto &options = cl::getRegisteredOptions();
  auto found = options.find("sink-common-insts");
  return found != options.end() && found->second->getNumOccurrences() > 0 &&
         !static_cast<cl::opt<bool> *>(found->second)->getValue();
}

} // namespace

extern "C" void lockstep_register(PassBuilder &builder) {
  builder.registerPipelineParsingCallback(
      [](StringRef name, ModulePassManager &manager, ArrayRef<PassBuilder::PipelineElement>) {
        if (!lockstep_knows(name.data(), name.size()))
          return false;
        lockstep_check(name.data(), name.size());
        manager.addPass(Passes(name));
        return true;
      });
  builder.registerOptimizerLastEPCallback([](ModulePassManager &manager, OptimizationLevel) {
    const char *names = getenv("LOCKSTEP_PASSES");
    if (!names || !*names)
      return;
    lockstep_check(names, strlen(names));
    manager.addPass(Passes(names, leavesArmsWhole()));
  });
}
