/** esbuild, which bundles what B11 weighs: no peer, but installed like one. */
import { install, type Peer } from "./install.ts";

const bundler: Peer = {
  name: "esbuild",
  version: "0.28.2",
  dependencies: { esbuild: "0.28.2" },
  overrides: {},
  entry: 'export { build } from "esbuild";',
};

interface BuildOptions {
  readonly stdin: { readonly contents: string; readonly resolveDir: string };
  readonly bundle: true;
  readonly minify: true;
  readonly write: false;
  readonly metafile: true;
  readonly format: "esm";
  readonly platform: "browser" | "node";
  readonly packages: "bundle" | "external";
}

/** What was built. */
export interface Built {
  readonly outputFiles: readonly { readonly contents: Uint8Array }[];
  readonly metafile: {
    /** By output; the bytes of each source that are in it. */
    readonly outputs: Readonly<Record<string, { readonly inputs: Readonly<Record<string, InOutput>> }>>;
  };
}

interface InOutput {
  readonly bytesInOutput: number;
}

/** What the case uses of esbuild. */
export interface Bundler {
  build(options: BuildOptions): Promise<Built>;
}

/** The bundler, or why it is missing. */
export async function loadBundler(installing: typeof install = install): Promise<Bundler | string> {
  const installed = await installing(bundler);
  if (installed.kind === "missing") return `esbuild ${bundler.version} is missing, and B11 with it: ${installed.why}.`;
  return (await import(installed.entry)) as Bundler;
}
