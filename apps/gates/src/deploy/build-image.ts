/** Build of a Dockerfile without Docker: the instructions run in folders of this machine, whose Node is the image. */
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import { listInstructions, parseCommand, parseCopy, parseDockerfile, parseEnv, type Stage } from "./dockerfile.ts";

/** Result of a build: the folders of the last stage, and the settings of a container. */
export interface Image {
  /** Folder of WORKDIR, which nobody may write. */
  readonly workFolder: string;
  /** Folder of the volume. */
  readonly volumeFolder: string;
  /** Environment: PATH, and the variables of ENV. */
  readonly env: Readonly<Record<string, string>>;
  readonly user: { readonly uid: number; readonly gid: number };
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
}

/** Folders of a build. The stages and the volume become folders beside the context, in `folder`. */
export interface BuildFolders {
  readonly context: string;
  readonly folder: string;
}

/** Path of an absolute path of the image on this machine, in the stage with the index. */
type ToFolder = (path: string, stage: number) => string;

/**
 * Runs COPY and RUN of all stages, and makes the code of the last one read-only. As another user than root, USER stands
 * for the current user. Throws an error for a failed instruction.
 */
export function buildImage(dockerfile: string, { context, folder }: BuildFolders): Image {
  const stages = parseDockerfile(dockerfile);
  const last = stages.at(-1);
  if (last === undefined) throw new Error("buildImage: expected a Dockerfile with FROM, got none.");
  const [volume = "/data"] = listInstructions(last, "VOLUME");
  const toFolder: ToFolder = (path, stage) =>
    path === volume
      ? join(folder, "volume")
      : join(folder, `stage-${stage}-${path.split("/")[1]}`, ...path.split("/").slice(2));
  const [image = ""] = listInstructions(last, "USER");
  const user = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const [uid = 0, gid = 0] = image.split(":").map(Number);
  const builder: Builder = { stages, context, toFolder, user: user.uid === 0 ? { uid, gid } : user, image };
  for (const index of stages.keys()) buildStage(builder, index);
  const workFolder = toFolder(getWorkPath(last), stages.length - 1);
  makeReadOnly(workFolder);
  const env = parseEnv(listInstructions(last, "ENV"));
  const values = Object.entries(env).map(([name, value]) => [name, value === volume ? toFolder(value, 0) : value]);
  return {
    workFolder,
    volumeFolder: toFolder(volume, 0),
    env: { PATH: getPath(), ...Object.fromEntries(values) },
    user: builder.user,
    command: parseCommand(listInstructions(last, "CMD").at(-1) ?? "[]"),
    healthCheck: parseCommand(listInstructions(last, "HEALTHCHECK").at(-1) ?? "[]"),
  };
}

interface Builder {
  readonly stages: readonly Stage[];
  readonly context: string;
  readonly toFolder: ToFolder;
  readonly user: Image["user"];
  /** Text of USER, which RUN instructions repeat. */
  readonly image: string;
}

function buildStage({ stages, context, toFolder, user, image }: Builder, index: number): void {
  const stage = stages[index];
  if (stage === undefined) return;
  const work = toFolder(getWorkPath(stage), index);
  mkdirSync(work, { recursive: true });
  for (const { keyword, text } of stage.instructions) {
    if (keyword === "RUN") runInstruction(toHostCommand(text, { toFolder, index, user, image }), work);
    if (keyword !== "COPY") continue;
    const { from, sources, target } = parseCopy(text);
    const source = stages.findIndex(({ name }) => name === from);
    for (const path of sources)
      copy(
        from === undefined ? join(context, path) : toFolder(path, source),
        join(work, target),
        sources.length > 1 || target.endsWith("/"),
      );
  }
}

function copy(source: string, target: string, isFolder: boolean): void {
  if (!existsSync(source)) throw new Error(`COPY: expected ${source}, which does not exist.`);
  const name = source.split("/").at(-1) ?? "";
  cpSync(source, isFolder ? join(target, name) : target, { recursive: true, verbatimSymlinks: true });
}

/** Replaces absolute paths of the image, and the user of the image, by those of this machine. */
function toHostCommand(
  text: string,
  {
    toFolder,
    index,
    user,
    image,
  }: { readonly toFolder: ToFolder; readonly index: number; readonly user: Image["user"]; readonly image: string },
): string {
  const owned = image === "" ? text : text.replaceAll(image, `${user.uid}:${user.gid}`);
  return owned.replaceAll(/(?<=\s)\/[\w/]+/g, (path) => toFolder(path, index));
}

function runInstruction(command: string, cwd: string): void {
  // The settings of npm and of the network, as a build has them from its machine.
  const { NODE_OPTIONS: _, NODE_COMPILE_CACHE: __, NODE_ENV: ___, ...rest } = process.env;
  const env = { ...rest, PATH: getPath() };
  const { status, stdout, stderr } = spawnSync("sh", ["-c", command], { cwd, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`RUN ${command}: expected exit code 0, got ${status}.\n${stdout}${stderr}`);
}

function makeReadOnly(folder: string): void {
  for (const path of [".", ...readdirSync(folder, { recursive: true, encoding: "utf8" })]) {
    const file = join(folder, path);
    const { mode } = statSync(file);
    chmodSync(file, mode & 0o555);
  }
}

function getWorkPath(stage: Stage): string {
  return listInstructions(stage, "WORKDIR").at(-1) ?? "/app";
}

/** Programs of the image: this Node, and the system's. */
function getPath(): string {
  return [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter);
}
