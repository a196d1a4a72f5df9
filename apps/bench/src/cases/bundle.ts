/**
 * B11: size of a bundle of the built packages, minified and gzipped. The figure is bytes; the time is the bundler's
 * time. The sizes of core's parts come from a bundle of its sources.
 */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Case, Contender } from "../case.ts";
import { measureTime } from "../measure.ts";
import type { BuildResult, Bundler } from "../peers/esbuild.ts";
import type { Peers } from "../peers/langgraph.ts";

const core = fileURLToPath(new URL("../../../../packages/core/", import.meta.url));
const everything = 'export * from "./dist/index.js";';
const withSchemas = `${everything}\nimport * as z from "zod";\nexport const schema = z.object({ city: z.string().optional(), days: z.array(z.number()) });`;

const plainGraph = 'export { defineGraph, defineState, END, run, START } from "./dist/index.js";';
const sources = 'export * from "./src/index.ts";';
const plainGraphSources = plainGraph.replace("./dist/index.js", "./src/index.ts");

/** Empty without built packages or without a bundler. */
export function createBundleCases({ bundler, langgraphEntry }: Peers): readonly Case[] {
  if (bundler === undefined || !existsSync(`${core}dist/index.js`)) return [];
  const createOwnContender = (name: string, contents: string, options: BundleOptions): Contender =>
    createContender(bundler, name, contents, { ...options, role: "ours", folder: core });
  return [
    {
      id: "B11",
      title: "core bundled, gzip",
      unit: "bundle",
      budget: { cpuUs: 1_000_000, text: "35 KB own code, 90 KB with libraries" },
      size: 1,
      contenders: [
        createOwnContender("own code", everything, { packages: "external", partsProgram: sources }),
        createOwnContender("own code with libraries", everything, { packages: "bundle" }),
        createOwnContender("own code with libraries and a zod schema", withSchemas, { packages: "bundle" }),
        createOwnContender("own code of a program with a plain graph", plainGraph, {
          packages: "external",
          partsProgram: plainGraphSources,
        }),
        createOwnContender("program with a plain graph, with libraries", plainGraph, { packages: "bundle" }),
        ...(langgraphEntry === undefined
          ? []
          : [
              createContender(bundler, "LangGraph.js", 'export * from "@langchain/langgraph";', {
                packages: "bundle",
                role: "peer",
                folder: dirname(fileURLToPath(langgraphEntry)),
              }),
            ]),
      ],
    },
  ];
}

interface BundleOptions {
  readonly packages: "bundle" | "external";
  /** The same program over the sources; the remark lists its parts. */
  readonly partsProgram?: string;
}

interface ContenderOptions extends BundleOptions {
  readonly role: Contender["role"];
  readonly folder: string;
}

function createContender(
  bundler: Bundler,
  name: string,
  contents: string,
  { role, folder, ...options }: ContenderOptions,
): Contender {
  let bytes = 0;
  let parts: ReadonlyMap<string, number> | undefined;
  const buildBundle = (program: string) =>
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
  const partsProgram = options.partsProgram;
  return {
    name,
    role,
    ownProcesses: true,
    open: () => ({
      run: async () => {
        const sample = await measureTime(async () => {
          const { outputFiles } = await buildBundle(contents);
          bytes = outputFiles.reduce((sum, file) => sum + gzipSync(file.contents).length, 0);
        });
        if (partsProgram !== undefined) parts ??= measureBundleParts(await buildBundle(partsProgram));
        return sample;
      },
      ...(partsProgram !== undefined && { getRemark: () => `${name}, minified: ${formatParts(parts ?? new Map())}.` }),
      close: () => bytes,
    }),
  };
}

/** Returns minified bytes by source folder, the largest first. */
export function measureBundleParts({ metafile }: Pick<BuildResult, "metafile">): ReadonlyMap<string, number> {
  const parts = new Map<string, number>();
  for (const { inputs } of Object.values(metafile.outputs))
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const part = /(?:^|\/)src\/([^/]+)\//.exec(path)?.[1] ?? "index";
      parts.set(part, (parts.get(part) ?? 0) + bytesInOutput);
    }
  return new Map([...parts].filter(([, bytes]) => bytes > 0).toSorted(([, one], [, other]) => other - one));
}

function formatParts(parts: ReadonlyMap<string, number>): string {
  const sum = [...parts.values()].reduce((all, bytes) => all + bytes, 0);
  const partTexts = [...parts].map(
    ([part, bytes]) => `${part} ${(bytes / 1_000).toFixed(0)} KB (${((100 * bytes) / sum).toFixed(0)} %)`,
  );
  return `${(sum / 1_000).toFixed(0)} KB in total: ${partTexts.join(", ")}`;
}
