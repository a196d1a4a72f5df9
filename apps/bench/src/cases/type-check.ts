/**
 * B12: what TypeScript needs for an agent with 30 tools and 5 middleware, in a process of its own, on the built packages. Its
 * own word counts: the CPU column is its check time, the wall column all of its time.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Case, Contender, Work } from "../case.ts";
import type { Sample } from "../measure.ts";
import type { Peers } from "../peers/langgraph.ts";
import { scratchFile } from "../scratch-files.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const compiler = join(root, "node_modules/typescript/bin/tsc");
const packages = join(root, "packages");
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, nth) => nth);

/** None where nothing was built. */
export function typeCheck({ langchainFolder }: Peers): readonly Case[] {
  if (!existsSync(join(packages, "statewright/dist/index.d.ts"))) return [];
  return [
    {
      id: "B12",
      title: "type check of an agent with 30 tools and 5 middleware, as TypeScript tells it",
      unit: "program",
      budget: { cpuUs: 1_000_000, text: "1 s" },
      size: 1,
      contenders: [
        checked("statewright", "ours", ownProgram, openOwn),
        ...(langchainFolder === undefined
          ? []
          : [checked("LangChain createAgent", "peer", theirProgram, langchainFolder)]),
        checked("the schemas of the tools alone", "limit", schemasAlone, openOwn),
      ],
    },
  ];
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

function checked(name: string, role: Contender["role"], program: string, libraries: Libraries): Contender {
  return { name, role, open: () => project(program, libraries) };
}

function project(program: string, libraries: Libraries): Work {
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
  writeFileSync(join(folder, "program.ts"), program);
  const modules = join(folder, "node_modules");
  if (typeof libraries === "string") symlinkSync(join(libraries, "node_modules"), modules, "junction");
  else {
    mkdirSync(modules);
    symlinkSync(join(packages, "statewright/node_modules/zod"), join(modules, "zod"), "junction");
  }
  let instantiations = 0;
  return {
    run: async () => {
      const told = checkOnce(folder);
      instantiations = told.instantiations;
      return told.sample;
    },
    notes: () => `${instantiations.toLocaleString("en")} instantiations`,
    close: () => {
      file.remove();
      return undefined;
    },
  };
}

function checkOnce(folder: string): { readonly sample: Sample; readonly instantiations: number } {
  const { stdout, status } = spawnSync(process.execPath, [compiler, "-p", folder, "--extendedDiagnostics"], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the generated program does not compile: ${stdout.slice(0, 2_000)}`);
  const numberOf = (label: string): number =>
    Number(new RegExp(`^${label}:\\s*([\\d.]+)`, "m").exec(stdout)?.[1] ?? Number.NaN);
  return {
    sample: { cpuUs: numberOf("Check time") * 1e6, wallUs: numberOf("Total time") * 1e6 },
    instantiations: numberOf("Instantiations"),
  };
}

// The programs.

const inputs = numbers(30)
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

const schemasAlone = `import * as z from "zod";
${inputs}
${numbers(30)
  .map(
    (nth) =>
      `export const read${nth} = ({ city, days, part${nth} }: z.infer<typeof input${nth}>): string => \`\${city} \${days} \${String(part${nth})}\`;`,
  )
  .join("\n")}
`;

const ownProgram = `import { createAgent, defineMiddleware, defineTool, reduce } from "statewright";
import * as z from "zod";
${inputs}
${numbers(30)
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
  tools: [${numbers(30)
    .map((nth) => `tool${nth}`)
    .join(", ")}],
  middleware: [${numbers(5)
    .map((nth) => `middleware${nth}`)
    .join(", ")}],
});
const ended = await agent.run({ input: "What is the weather?" }).result;
export const text: string = ended.status === "done" ? ended.text : ended.status;
`;

const theirProgram = `import { createAgent, createMiddleware, tool } from "langchain";
import * as z from "zod";
${inputs}
${numbers(30)
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
  tools: [${numbers(30)
    .map((nth) => `tool${nth}`)
    .join(", ")}],
  middleware: [${numbers(5)
    .map((nth) => `middleware${nth}`)
    .join(", ")}],
});
const ended = await agent.invoke({ messages: [{ role: "user", content: "What is the weather?" }] });
export const text: string = String(ended.messages.at(-1)?.content);
`;
