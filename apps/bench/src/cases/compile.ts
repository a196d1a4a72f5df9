/** B19: what a graph costs before its first node runs, each in a process of its own: definition, checks, machine, plan, first state. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Case, type Contender, doublings } from "../case.ts";
import type { ColdShape } from "../cold/shape.ts";
import type { Sample } from "../measure.ts";
import type { Peers } from "../peers/langgraph.ts";

const children = {
  statewright: fileURLToPath(new URL("../cold/statewright.ts", import.meta.url)),
  langgraph: fileURLToPath(new URL("../cold/langgraph.ts", import.meta.url)),
};

const nodes = 100;

export function compile(shape: ColdShape, { langgraphEntry }: Peers): Case {
  return {
    id: shape === "chain" ? "B19" : "B19 parallel",
    title: `from the definition of ${nodes} nodes ${shape === "chain" ? "in a row" : "side by side"} to the first line of the first, cold`,
    unit: "node",
    budget: { cpuUs: 100, text: "100 µs (10 ms for 100)" },
    size: nodes,
    contenders: [
      cold("statewright", "ours", [children.statewright, shape], ["node"]),
      ...(langgraphEntry === undefined
        ? []
        : [cold("LangGraph.js", "peer", [children.langgraph, shape], [langgraphEntry])]),
      cold("its definition and XState's machine alone", "limit", [children.statewright, shape], ["machine"]),
    ],
    checks: [{ of: "statewright", to: "its definition and XState's machine alone", measure: "cpu", atMost: 1 }],
  };
}

function cold(
  name: string,
  role: Contender["role"],
  before: readonly string[],
  after: readonly string[] = [],
): Contender {
  return {
    name,
    role,
    growth: doublings(25),
    elsewhere: true,
    open: () => ({ run: async (size) => compileOnce([...before, `${size}`, ...after]) }),
  };
}

function compileOnce(args: readonly string[]): Sample {
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (stdout.startsWith("{")) return JSON.parse(stdout) as Sample;
  throw new Error(`${args[0]} said nothing: ${stderr.trim().split("\n").at(-1) ?? ""}`);
}
