/**
 * B11: what a bundle weighs, minified and by gzip, of the built packages. The bytes are the figure; the time is the
 * bundler's. What the parts of core weigh is told from a bundle of its sources.
 */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Case, Contender } from "../case.ts";
import { timed } from "../measure.ts";
import type { Built, Bundler } from "../peers/esbuild.ts";
import type { Peers } from "../peers/langgraph.ts";

const core = fileURLToPath(new URL("../../../../packages/core/", import.meta.url));
const everything = 'export * from "./dist/index.js";';
const withSchemas = `${everything}\nimport * as z from "zod";\nexport const schema = z.object({ city: z.string().optional(), days: z.array(z.number()) });`;

const plainGraph = 'export { defineGraph, defineState, END, run, START } from "./dist/index.js";';
const sources = 'export * from "./src/index.ts";';
const sourcesOfPlainGraph = plainGraph.replace("./dist/index.js", "./src/index.ts");

/** None where nothing was built, or where the bundler is missing. */
export function bundleSize({ bundler, langgraphEntry }: Peers): readonly Case[] {
  if (bundler === undefined || !existsSync(`${core}dist/index.js`)) return [];
  const weighed = (name: string, contents: string, options: Options): Contender =>
    contender(bundler, name, contents, { ...options, role: "ours", folder: core });
  return [
    {
      id: "B11",
      title: "core bundled, gzip",
      unit: "bundle",
      budget: { cpuUs: 1_000_000, text: "35 KB own code, 90 KB with libraries" },
      size: 1,
      contenders: [
        weighed("own code", everything, { packages: "external", parts: sources }),
        weighed("with its libraries", everything, { packages: "bundle" }),
        weighed("with its libraries and a schema of zod", withSchemas, { packages: "bundle" }),
        weighed("own code of a program with a plain graph", plainGraph, {
          packages: "external",
          parts: sourcesOfPlainGraph,
        }),
        weighed("a plain graph with its libraries", plainGraph, { packages: "bundle" }),
        ...(langgraphEntry === undefined
          ? []
          : [
              contender(bundler, "LangGraph.js", 'export * from "@langchain/langgraph";', {
                packages: "bundle",
                role: "peer",
                folder: dirname(fileURLToPath(langgraphEntry)),
              }),
            ]),
      ],
    },
  ];
}

interface Options {
  readonly packages: "bundle" | "external";
  /** The same program over the sources, whose parts are told. */
  readonly parts?: string;
}

interface Where extends Options {
  readonly role: Contender["role"];
  readonly folder: string;
}

function contender(bundler: Bundler, name: string, contents: string, { role, folder, ...options }: Where): Contender {
  let bytes = 0;
  let parts: ReadonlyMap<string, number> | undefined;
  const built = (program: string) =>
    bundler.build({
      stdin: { contents: program, resolveDir: folder },
      bundle: true,
      minify: true,
      write: false,
      metafile: true,
      format: "esm",
      platform: role === "ours" ? "browser" : "node",
      packages: options.packages,
    });
  const partsOf = options.parts;
  return {
    name,
    role,
    elsewhere: true,
    open: () => ({
      run: async () => {
        const sample = await timed(async () => {
          const { outputFiles } = await built(contents);
          bytes = outputFiles.reduce((sum, file) => sum + gzipSync(file.contents).length, 0);
        });
        if (partsOf !== undefined) parts ??= partsOfBundle(await built(partsOf));
        return sample;
      },
      ...(partsOf !== undefined && { remark: () => `${name}, minified: ${tellParts(parts ?? new Map())}.` }),
      close: () => bytes,
    }),
  };
}

/** Minified bytes by the folder of the source, the largest first. */
export function partsOfBundle({ metafile }: Pick<Built, "metafile">): ReadonlyMap<string, number> {
  const parts = new Map<string, number>();
  for (const { inputs } of Object.values(metafile.outputs))
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const part = /(?:^|\/)src\/([^/]+)\//.exec(path)?.[1] ?? "index";
      parts.set(part, (parts.get(part) ?? 0) + bytesInOutput);
    }
  return new Map([...parts].filter(([, bytes]) => bytes > 0).toSorted(([, one], [, other]) => other - one));
}

function tellParts(parts: ReadonlyMap<string, number>): string {
  const sum = [...parts.values()].reduce((all, bytes) => all + bytes, 0);
  const told = [...parts].map(
    ([part, bytes]) => `${part} ${(bytes / 1_000).toFixed(0)} KB (${((100 * bytes) / sum).toFixed(0)} %)`,
  );
  return `${(sum / 1_000).toFixed(0)} KB, of which ${told.join(", ")}`;
}
