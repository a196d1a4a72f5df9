/**
 * B19: cost of a graph before its first node runs, in a new process for each sample: definition, checks, machine,
 * plan, first state.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Case, type Contender, listDoublings } from "../case.ts";
import type { ColdShape } from "../cold/shape.ts";
import type { Peers } from "../peers/langgraph.ts";
import type { Sample } from "../sample.ts";

const programs = {
  statewright: fileURLToPath(new URL("../cold/statewright.ts", import.meta.url)),
  langgraph: fileURLToPath(new URL("../cold/langgraph.ts", import.meta.url)),
};

const nodes = 100;

export function createCompileCase(shape: ColdShape, { langgraphEntry }: Peers): Case {
  return {
    id: shape === "chain" ? "B19" : "B19 parallel",
    title: `definition of ${nodes} nodes ${shape === "chain" ? "in a chain" : "in parallel"} up to the start of the first node, in a cold process`,
    unit: "node",
    budget: { cpuUs: 100, text: "100 µs (10 ms for 100)" },
    size: nodes,
    contenders: [
      createColdContender("statewright", "ours", [programs.statewright, shape], ["node"]),
      ...(langgraphEntry === undefined
        ? []
        : [createColdContender("LangGraph.js", "peer", [programs.langgraph, shape], [langgraphEntry])]),
      createColdContender("definition and XState machine only", "limit", [programs.statewright, shape], ["machine"]),
    ],
    checks: [{ subject: "statewright", baseline: "definition and XState machine only", measure: "cpu", max: 1 }],
  };
}

function createColdContender(
  name: string,
  role: Contender["role"],
  argsBeforeSize: readonly string[],
  argsAfterSize: readonly string[] = [],
): Contender {
  return {
    name,
    role,
    growth: listDoublings(25),
    ownProcesses: true,
    open: () => ({ run: async (size) => measureCompile([...argsBeforeSize, `${size}`, ...argsAfterSize]) }),
  };
}

function measureCompile(args: readonly string[]): Sample {
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (stdout.startsWith("{")) return JSON.parse(stdout) as Sample;
  throw new Error(`compile: expected a sample from ${args[0]}, got none: ${stderr.trim().split("\n").at(-1) ?? ""}`);
}
