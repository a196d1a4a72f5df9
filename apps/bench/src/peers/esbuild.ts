/** esbuild, the bundler of B11 and B22: no peer, but installed in the same way. */
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
  readonly minify?: true;
  readonly write: false;
  readonly metafile: true;
  readonly format: "esm";
  readonly platform: "browser" | "node";
  readonly packages: "bundle" | "external";
  /** Packages that stay outside of the bundle. */
  readonly external?: readonly string[];
}

/** Result of a build. */
export interface BuildResult {
  readonly outputFiles: readonly { readonly contents: Uint8Array }[];
  readonly metafile: {
    /** By output file: the bytes of each source file in the output. */
    readonly outputs: Readonly<Record<string, { readonly inputs: Readonly<Record<string, InputSize>> }>>;
  };
}

interface InputSize {
  readonly bytesInOutput: number;
}

/** Part of esbuild used by the case. */
export interface Bundler {
  build(options: BuildOptions): Promise<BuildResult>;
}

/** Returns the bundler, or a sentence about its failed installation. */
export async function loadBundler(installPeer: typeof install = install): Promise<Bundler | string> {
  const installed = await installPeer(bundler);
  if (installed.kind === "missing")
    return `esbuild ${bundler.version} is missing, so B11 and the bundle of B22 are skipped: ${installed.reason}.`;
  return (await import(installed.entry)) as Bundler;
}
