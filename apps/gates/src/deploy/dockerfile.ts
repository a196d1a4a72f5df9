/** Dockerfiles as data: instructions by stage, and the faults that a build or a container would show. */

/** Instruction of a Dockerfile, such as `COPY package.json ./`. */
export interface Instruction {
  readonly keyword: string;
  /** Text after the keyword. */
  readonly text: string;
}

/** Part of a Dockerfile from one FROM to the next. */
export interface Stage {
  readonly image: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

/** COPY instruction: sources and target, and the stage of the sources if they are not from the context. */
export interface CopyInstruction {
  readonly from: string | undefined;
  readonly sources: readonly string[];
  readonly target: string;
}

/** Files around a Dockerfile. */
export interface BuildContext {
  /** Names of the files in the folder of the Dockerfile. */
  readonly files: readonly string[];
  /** Lines of .dockerignore. */
  readonly ignored: readonly string[];
}

/** Parses the stages. Throws an error for an instruction before the first FROM. */
export function parseDockerfile(text: string): readonly Stage[] {
  const stages: { image: string; name: string | undefined; instructions: Instruction[] }[] = [];
  for (const line of text.replaceAll(/\\\n/g, " ").split("\n")) {
    const [, keyword = "", rest = ""] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? [];
    if (keyword === "") continue;
    const [, image = "", name] = /^(\S+)(?:\s+AS\s+(\S+))?$/i.exec(rest) ?? [];
    if (keyword === "FROM") stages.push({ image, name, instructions: [] });
    else if (stages.length === 0) throw new Error(`Dockerfile: expected FROM first, got ${keyword}. Add a FROM line.`);
    else stages.at(-1)?.instructions.push({ keyword, text: rest });
  }
  return stages;
}

/** Returns the texts of all instructions of a stage with the keyword. */
export function listInstructions(stage: Stage, keyword: string): readonly string[] {
  return stage.instructions.filter((instruction) => instruction.keyword === keyword).map(({ text }) => text);
}

export function parseCopy(text: string): CopyInstruction {
  const words = text.split(/\s+/);
  const from = words.find((word) => word.startsWith("--from="))?.slice("--from=".length);
  const paths = words.filter((word) => !word.startsWith("--"));
  return { from, sources: paths.slice(0, -1), target: paths.at(-1) ?? "" };
}

/** Parses `NAME=value` pairs without quotes, as ENV has them. */
export function parseEnv(texts: readonly string[]): Readonly<Record<string, string>> {
  const pairs = texts.flatMap((text) => text.split(/\s+/)).map((pair) => /^([A-Z_]+)=(\S*)$/.exec(pair));
  return Object.fromEntries(pairs.flatMap((match) => (match === null ? [] : [[match[1] ?? "", match[2] ?? ""]])));
}

/** Parses the form of CMD and HEALTHCHECK that starts no shell: a JSON list of texts. */
export function parseCommand(text: string): readonly string[] {
  const command: unknown = JSON.parse(text.slice(text.indexOf("[")));
  if (Array.isArray(command) && command.every((word) => typeof word === "string")) return command;
  throw new Error(`Dockerfile: expected a JSON list of texts, got ${text}. Use the form ["program", "argument"].`);
}

/** Returns a sentence for each fault. `oldestNode` is the oldest Node that the packages support, such as `22.14`. */
export function findDockerfileProblems(
  text: string,
  { context, oldestNode }: { readonly context: BuildContext; readonly oldestNode: string },
): readonly string[] {
  const stages = parseDockerfile(text);
  const last = stages.at(-1);
  if (last === undefined) return ["expected a FROM line, got none"];
  return [
    ...stages.flatMap((stage) => findImageProblems(stage, oldestNode)),
    ...stages.flatMap((stage) => findCopyProblems(stage, stages, context)),
    ...findUserProblems(last),
    ...findCommandProblems(last),
    ...findPortProblems(last),
  ];
}

function findImageProblems({ image }: Stage, oldestNode: string): readonly string[] {
  const major = Number(/^node:(\d+)/.exec(image)?.[1]);
  return major > Number.parseInt(oldestNode, 10) ? [] : [`expected an image of Node above ${oldestNode}, got ${image}`];
}

function findCopyProblems(stage: Stage, stages: readonly Stage[], context: BuildContext): readonly string[] {
  return listInstructions(stage, "COPY").flatMap((text) => {
    const { from, sources } = parseCopy(text);
    if (from !== undefined)
      return stages.some(({ name }) => name === from) ? [] : [`expected a stage, got ${from} in COPY ${text}`];
    return sources.flatMap((source) => [
      ...(context.files.includes(source) ? [] : [`expected the file ${source} of COPY ${text}, got none`]),
      ...(context.ignored.includes(`!${source}`) ? [] : [`expected !${source} in .dockerignore, got none`]),
    ]);
  });
}

function findUserProblems(stage: Stage): readonly string[] {
  const [user = "root"] = listInstructions(stage, "USER").slice(-1);
  const isNumber = /^[1-9]\d*:[1-9]\d*$/.test(user);
  const owned = listInstructions(stage, "VOLUME").filter(
    (volume) => !listInstructions(stage, "RUN").some((run) => run.includes(`chown ${user} ${volume}`)),
  );
  return [
    ...(isNumber ? [] : [`expected numbers of a user and a group other than root, got USER ${user}`]),
    ...owned.map((volume) => `expected a RUN with chown ${user} ${volume}, got none`),
  ];
}

function findCommandProblems(stage: Stage): readonly string[] {
  const copied = listInstructions(stage, "COPY").flatMap((text) => parseCopy(text).sources);
  const [program, file = ""] = parseCommand(listInstructions(stage, "CMD").at(-1) ?? "[]");
  if (program === "node" && copied.includes(file)) return [];
  return [`expected CMD to start node with a copied file, got ${program} ${file}`];
}

function findPortProblems(stage: Stage): readonly string[] {
  const { PORT } = parseEnv(listInstructions(stage, "ENV"));
  const [exposed] = listInstructions(stage, "EXPOSE");
  const [check = ""] = listInstructions(stage, "HEALTHCHECK");
  return [
    ...(exposed === PORT ? [] : [`expected EXPOSE ${PORT}, got ${exposed}`]),
    ...(check.includes(`http://127.0.0.1:${PORT}/livez`) ? [] : [`expected HEALTHCHECK at port ${PORT}, got ${check}`]),
  ];
}
