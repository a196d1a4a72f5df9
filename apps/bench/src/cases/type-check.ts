/**
 * B12: what TypeScript needs for an agent with 30 tools and 5 middleware, in a process of its own, on the built packages. Its
 * own word counts: the CPU column is its check time, the wall column all of its time.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Case, type Contender, doublings, type Work } from "../case.ts";
import type { Sample } from "../measure.ts";
import type { Peers } from "../peers/langgraph.ts";
import { scratchFile } from "../scratch-files.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const compiler = join(root, "node_modules/typescript/bin/tsc");
const packages = join(root, "packages");
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, nth) => nth);

export function typeCheck({ agents }: Pick<Peers, "agents">): Case {
  const langchain = agents.installed.find(({ main }) => main === "langchain");
  return {
    id: "B12",
    title: "type check of an agent with 30 tools and 5 middleware, as TypeScript tells it",
    unit: "program",
    budget: { cpuUs: 1_000_000, text: "1 s" },
    size: 30,
    sizeOf: "data",
    contenders: [
      checked("statewright", "ours", ownProgram, openOwn),
      ...(langchain === undefined ? [] : [checked("LangChain createAgent", "peer", theirProgram, langchain.folder)]),
      checked("the schemas of the tools alone", "limit", schemasAlone, openOwn),
    ],
  };
}

/** Declarations as the sources are now: those that are there may be of an older source, or missing. */
function buildDeclarations(): void {
  const { stdout } = spawnSync(process.execPath, [compiler, "-b", join(packages, "statewright")], { encoding: "utf8" });
  if (!existsSync(join(packages, "statewright/dist/index.d.ts")))
    throw new Error(`the declarations of statewright could not be built: ${stdout.slice(0, 2_000)}`);
}

/** Imports of our packages lead to their built declarations, as those of an installed package would. */
const openOwn = {
  paths: {
    statewright: [join(packages, "statewright/dist/index.d.ts")],
    "@statewright/*": [join(packages, "*/dist/index.d.ts")],
  },
};

/** Where the libraries of a program are: by paths, or in the folder of a peer. */
type Libraries = string | { readonly paths: Readonly<Record<string, readonly string[]>> };

/** The text of a program with so many tools. */
type Program = (tools: number) => string;

function checked(name: string, role: Contender["role"], program: Program, libraries: Libraries): Contender {
  const growth = role === "ours" ? { growth: doublings(15) } : {};
  return { name, role, ...growth, elsewhere: true, open: () => project(program, libraries) };
}

function project(program: Program, libraries: Libraries): Work {
  if (typeof libraries !== "string") buildDeclarations();
  const file = scratchFile("tsconfig.json");
  const folder = dirname(file.path);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: "es2023",
    module: "nodenext",
    types: [],
    ...(typeof libraries === "string" ? {} : libraries),
  };
  writeFileSync(file.path, JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const modules = join(folder, "node_modules");
  if (typeof libraries === "string") symlinkSync(join(libraries, "node_modules"), modules, "junction");
  else {
    mkdirSync(modules);
    symlinkSync(join(packages, "statewright/node_modules/zod"), join(modules, "zod"), "junction");
  }
  let notes = "";
  return {
    run: async (tools) => {
      writeFileSync(join(folder, "program.ts"), program(tools));
      const { sample, types, instantiations } = checkOnce(folder);
      const aSecond = Math.round((types / sample.cpuUs) * 1_000);
      const counted = [types, instantiations].map((count) => count.toLocaleString("en"));
      notes = `${counted[0]} types, ${aSecond} thousand a second, ${counted[1]} instantiations`;
      return sample;
    },
    notes: () => notes,
    close: () => {
      file.remove();
      return undefined;
    },
  };
}

interface Checked {
  readonly sample: Sample;
  readonly types: number;
  readonly instantiations: number;
}

function checkOnce(folder: string): Checked {
  const { stdout, status } = spawnSync(process.execPath, [compiler, "-p", folder, "--extendedDiagnostics"], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the generated program does not compile: ${stdout.slice(0, 2_000)}`);
  const numberOf = (label: string): number =>
    Number(new RegExp(`^${label}:\\s*([\\d.]+)`, "m").exec(stdout)?.[1] ?? Number.NaN);
  return {
    sample: { cpuUs: numberOf("Check time") * 1e6, wallUs: numberOf("Total time") * 1e6 },
    types: numberOf("Types"),
    instantiations: numberOf("Instantiations"),
  };
}

// The programs.

const inputs: Program = (tools) =>
  numbers(tools)
    .map(
      (nth) => `const input${nth} = z.object({
  city: z.string().describe("A city"),
  days: z.number().int().min(1).max(14).default(3),
  units: z.enum(["metric", "imperial"]).optional(),
  place: z.object({ lat: z.number(), lon: z.number(), tags: z.array(z.string()) }).optional(),
  part${nth}: z.union([z.literal("a${nth}"), z.object({ kind: z.literal("b"), n: z.number() })]),
});`,
    )
    .join("\n");

const schemasAlone: Program = (tools) => `import * as z from "zod";
${inputs(tools)}
${numbers(tools)
  .map(
    (nth) =>
      `export const read${nth} = ({ city, days, part${nth} }: z.infer<typeof input${nth}>): string => \`\${city} \${days} \${String(part${nth})}\`;`,
  )
  .join("\n")}
`;

const ownProgram: Program = (tools) => `import { createAgent, defineMiddleware, defineTool, reduce } from "statewright";
import * as z from "zod";
${inputs(tools)}
${numbers(tools)
  .map(
    (nth) => `const tool${nth} = defineTool({
  name: "tool_${nth}",
  description: "Tool ${nth}.",
  input: input${nth},
  effect: "pure",
  run: ({ city, days, part${nth} }) => \`\${city} \${days} \${String(part${nth})}\`,
});`,
  )
  .join("\n")}
${numbers(5)
  .map(
    (nth) => `const middleware${nth} = defineMiddleware({
  name: "middleware${nth}",
  channels: { count${nth}: reduce(z.number().default(0), (count, more: number) => count + more) },
  beforeModel: (request, { write }) => {
    write({ count${nth}: request.messages.length });
  },
  afterModel: (reply) => ({ ...reply, content: reply.content }),
});`,
  )
  .join("\n")}
const agent = createAgent({
  name: "assistant",
  model: { id: "scripted", respond: async () => ({ content: [{ type: "text", text: "Done." }], finish: "stop" }) },
  tools: [${numbers(tools)
    .map((nth) => `tool${nth}`)
    .join(", ")}],
  middleware: [${numbers(5)
    .map((nth) => `middleware${nth}`)
    .join(", ")}],
});
const ended = await agent.run({ input: "What is the weather?" }).result;
export const text: string = ended.status === "done" ? ended.text : ended.status;
`;

const theirProgram: Program = (tools) => `import { createAgent, createMiddleware, tool } from "langchain";
import * as z from "zod";
${inputs(tools)}
${numbers(tools)
  .map(
    (
      nth,
    ) => `const tool${nth} = tool(async ({ city, days, part${nth} }) => \`\${city} \${days} \${String(part${nth})}\`, {
  name: "tool_${nth}",
  description: "Tool ${nth}.",
  schema: input${nth},
});`,
  )
  .join("\n")}
${numbers(5)
  .map(
    (nth) => `const middleware${nth} = createMiddleware({
  name: "middleware${nth}",
  stateSchema: z.object({ count${nth}: z.number().default(0) }),
  beforeModel: ({ messages }) => ({ count${nth}: messages.length }),
  afterModel: () => undefined,
});`,
  )
  .join("\n")}
const agent = createAgent({
  model: "openai:gpt-4o",
  tools: [${numbers(tools)
    .map((nth) => `tool${nth}`)
    .join(", ")}],
  middleware: [${numbers(5)
    .map((nth) => `middleware${nth}`)
    .join(", ")}],
});
const ended = await agent.invoke({ messages: [{ role: "user", content: "What is the weather?" }] });
export const text: string = String(ended.messages.at(-1)?.content);
`;
