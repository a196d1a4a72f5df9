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
  readonly format: "esm";
  readonly platform: "browser" | "node";
  readonly packages: "bundle" | "external";
}

/** What the case uses of esbuild. */
export interface Bundler {
  build(options: BuildOptions): Promise<{ readonly outputFiles: readonly { readonly contents: Uint8Array }[] }>;
}

/** The bundler, or undefined where it does not install. */
export async function loadBundler(): Promise<Bundler | undefined> {
  const installed = await install(bundler);
  return installed.kind === "missing" ? undefined : ((await import(installed.entry)) as Bundler);
}
