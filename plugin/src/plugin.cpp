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

// What the optimiser was told about sinking what both sides of a branch end with; none where it was told nothing.
cl::opt<bool> *sinking() {
  auto &options = cl::getRegisteredOptions();
  auto found = options.find("sink-common-insts");
  bool told = found != options.end() && found->second->getNumOccurrences() > 0;
  return told ? static_cast<cl::opt<bool> *>(found->second) : nullptr;
}

struct Passes : PassInfoMixin<Passes> {
  std::string names;
  bool wholeArms;

  explicit Passes(StringRef names, bool wholeArms = false) : names(names), wholeArms(wholeArms) {}

  PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
    // Behind `meld` it is sunk, which the option would keep LLVM's pass from.
    cl::opt<bool> *sinks = wholeArms ? sinking() : nullptr;
    if (sinks)
      *sinks = true;
    bool changed = lockstep_run(wrap(&module), names.data(), names.size(), wholeArms);
    if (sinks)
      *sinks = false;
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }

  // Code that is not to be optimised is left by the passes themselves.
  static bool isRequired() { return true; }
};

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
    // Whether the optimiser left that in them: -mllvm -sink-common-insts=false.
    cl::opt<bool> *sinks = sinking();
    manager.addPass(Passes(names, sinks && !*sinks));
  });
}
