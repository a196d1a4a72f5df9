/**
 * B12: type check of an agent with 30 tools and 5 middleware, in its own process, against the built packages. Times
 * are reported by TypeScript: the CPU column is the check time, the wall column the total time.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Case, type Contender, listDoublings, type Work } from "../case.ts";
import type { Peers } from "../peers/langgraph.ts";
import type { Sample } from "../sample.ts";
import { createScratchFile } from "../scratch-files.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const compiler = join(root, "node_modules/typescript/bin/tsc");
const packages = join(root, "packages");
const listNumbers = (count: number): readonly number[] => Array.from({ length: count }, (_, nth) => nth);

export function createTypeCheckCase({ agents }: Pick<Peers, "agents">): Case {
  const langchain = agents.installed.find(({ main }) => main === "langchain");
  return {
    id: "B12",
    title: "type check of an agent with 30 tools and 5 middleware, times reported by TypeScript",
    unit: "program",
    budget: { cpuUs: 1_000_000, text: "1 s" },
    size: 30,
    sizeKind: "data",
    contenders: [
      createContender("statewright", "ours", createOwnProgram, ownLibraries),
      ...(langchain === undefined
        ? []
        : [createContender("LangChain createAgent", "peer", createPeerProgram, langchain.folder)]),
      createContender("schemas of the tools only", "limit", createSchemaProgram, ownLibraries),
    ],
  };
}

/** Builds the declarations of the current sources: existing declarations may be outdated or missing. */
function buildDeclarations(): void {
  const { stdout } = spawnSync(process.execPath, [compiler, "-b", join(packages, "statewright")], { encoding: "utf8" });
  if (!existsSync(join(packages, "statewright/dist/index.d.ts")))
    throw new Error(`type check: the declarations of statewright could not be built: ${stdout.slice(0, 2_000)}`);
}

/** Maps imports of our packages to the built declarations, as in an installed package. */
const ownLibraries = {
  paths: {
    statewright: [join(packages, "statewright/dist/index.d.ts")],
    "@statewright/*": [join(packages, "*/dist/index.d.ts")],
    // Further entries of the packages that statewright is made of.
    "@statewright/core/*": [join(packages, "core/dist/*.d.ts")],
    "@statewright/agent/*": [join(packages, "agent/dist/*.d.ts")],
  },
};

/** Location of a program's libraries: path mappings, or the folder of a peer. */
type Libraries = string | { readonly paths: Readonly<Record<string, readonly string[]>> };

/** Creates the source of a program with the given number of tools. */
type ProgramFactory = (tools: number) => string;

function createContender(
  name: string,
  role: Contender["role"],
  program: ProgramFactory,
  libraries: Libraries,
): Contender {
  const growth = role === "ours" ? { growth: listDoublings(15) } : {};
  return { name, role, ...growth, ownProcesses: true, open: () => openProject(program, libraries) };
}

function openProject(program: ProgramFactory, libraries: Libraries): Work {
  if (typeof libraries !== "string") buildDeclarations();
  const file = createScratchFile("tsconfig.json");
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
      const { sample, types, instantiations } = runTypeCheck(folder);
      const thousandsPerSecond = Math.round((types / sample.cpuUs) * 1_000);
      const formattedCounts = [types, instantiations].map((count) => count.toLocaleString("en"));
      notes = `${formattedCounts[0]} types, ${thousandsPerSecond} thousand a second, ${formattedCounts[1]} instantiations`;
      return sample;
    },
    getNotes: () => notes,
    close: () => {
      file.remove();
      return undefined;
    },
  };
}

interface TypeCheckResult {
  readonly sample: Sample;
  readonly types: number;
  readonly instantiations: number;
}

function runTypeCheck(folder: string): TypeCheckResult {
  const { stdout, status } = spawnSync(process.execPath, [compiler, "-p", folder, "--extendedDiagnostics"], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`type check: the generated program does not compile: ${stdout.slice(0, 2_000)}`);
  const parseNumber = (label: string): number =>
    Number(new RegExp(`^${label}:\\s*([\\d.]+)`, "m").exec(stdout)?.[1] ?? Number.NaN);
  return {
    sample: { cpuUs: parseNumber("Check time") * 1e6, wallUs: parseNumber("Total time") * 1e6 },
    types: parseNumber("Types"),
    instantiations: parseNumber("Instantiations"),
  };
}

// Generated programs.

const createInputs: ProgramFactory = (tools) =>
  listNumbers(tools)
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

const createSchemaProgram: ProgramFactory = (tools) => `import * as z from "zod";
${createInputs(tools)}
${listNumbers(tools)
  .map(
    (nth) =>
      `export const read${nth} = ({ city, days, part${nth} }: z.infer<typeof input${nth}>): string => \`\${city} \${days} \${String(part${nth})}\`;`,
  )
  .join("\n")}
`;

const createOwnProgram: ProgramFactory = (
  tools,
) => `import { channel, createAgent, defineMiddleware, defineTool } from "statewright";
import * as z from "zod";
${createInputs(tools)}
${listNumbers(tools)
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
${listNumbers(5)
  .map(
    (nth) => `const middleware${nth} = defineMiddleware({
  name: "middleware${nth}",
  channels: { count${nth}: channel.reduce(z.number().default(0), (count, more: number) => count + more) },
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
  tools: [${listNumbers(tools)
    .map((nth) => `tool${nth}`)
    .join(", ")}],
  middleware: [${listNumbers(5)
    .map((nth) => `middleware${nth}`)
    .join(", ")}],
});
const ended = await agent.run({ input: "What is the weather?" }).result;
export const text: string = ended.status === "done" ? ended.text : ended.status;
`;

const createPeerProgram: ProgramFactory = (tools) => `import { createAgent, createMiddleware, tool } from "langchain";
import * as z from "zod";
${createInputs(tools)}
${listNumbers(tools)
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
${listNumbers(5)
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
  tools: [${listNumbers(tools)
    .map((nth) => `tool${nth}`)
    .join(", ")}],
  middleware: [${listNumbers(5)
    .map((nth) => `middleware${nth}`)
    .join(", ")}],
});
const ended = await agent.invoke({ messages: [{ role: "user", content: "What is the weather?" }] });
export const text: string = String(ended.messages.at(-1)?.content);
`;
