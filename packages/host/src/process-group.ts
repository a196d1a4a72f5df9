/**
 * Process groups: how one is named so that it can be found again, how it is signalled, and how it is made to die with us.
 *
 * A child process that outlives a parent killed by SIGKILL does its effect later, when nobody knows of it any more. So
 * one small shell, the watcher, holds the reading end of a pipe from this process and knows which groups live. When the
 * pipe ends, because we ended in whatever way, it kills them all. It runs while there are groups, and a little longer,
 * so that commands one after the other do not each wait for a watcher of their own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import { systemCodeOf } from "./host-error.ts";

/** A group of processes, as plain data for a journal: the pid of its leader, and when it was born where that is known. */
export interface ProcessGroup {
  readonly id: number;
  /** Start of the system and of the leader, on Linux: a process that got the same pid later has another one. */
  readonly born?: string;
}

/** Name the group of a leader that is alive. */
export function groupOf(id: number): ProcessGroup {
  const started = startOf(id);
  return started === undefined ? { id } : { id, born: `${bootId()}/${started}` };
}

/**
 * Kill a group that an earlier process of ours left behind, judged by its journal: `killed`, `gone` when it no longer
 * exists (also when its pid now belongs to someone else), or `unknown` when this system cannot tell; then nothing is
 * signalled. Throws what the system answers when it exists and we may not end it.
 */
export function endGroup(group: ProcessGroup): "killed" | "gone" | "unknown" {
  if (group.born === undefined || process.platform !== "linux" || group.id <= 1) return "unknown";
  if (groupOf(group.id).born !== group.born) return "gone";
  return sendSignal(group.id, "SIGKILL") ? "killed" : "gone";
}

/**
 * Signal every process of a group; false when there is none. A pid is not given away while its group has members, so
 * after its leader was collected a live process with that pid is someone else's, and is left alone.
 */
export function signalGroup(id: number, signal: NodeJS.Signals, leaderCollected: boolean): boolean {
  if (leaderCollected && exists(id)) return false;
  try {
    return sendSignal(id, signal);
  } catch (error) {
    // macOS answers so for a group of zombies; elsewhere the group changed its user, and only the user can end it.
    if (systemCodeOf(error) === "EPERM") return false;
    throw error;
  }
}

/** Whether a group has members, counting those that have ended and were not collected. */
export function groupExists(id: number): boolean {
  try {
    return process.kill(-id, 0);
  } catch (error) {
    return systemCodeOf(error) === "EPERM";
  }
}

function sendSignal(id: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(-id, signal);
  } catch (error) {
    if (systemCodeOf(error) === "ESRCH") return false;
    throw error;
  }
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemCodeOf(error) === "EPERM";
  }
}

/** When a process started, in ticks since the system did; undefined where /proc does not say. */
function startOf(pid: number): string | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  // The name of the program stands in parentheses and may hold anything, so count from the last one: field 22.
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

let knownBootId: string | undefined;

function bootId(): string {
  knownBootId ??= readProc("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
  return knownBootId;
}

function readProc(path: string): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

/**
 * The gate before every command: a shell that waits for a line on descriptor 3 and then becomes the command. Between
 * the fork and the word to the watcher this process can be killed; then the line never comes, and nothing was run.
 */
export function gated(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): { command: string; args: string[] } {
  // A shell sets these on its own account.
  const extra = ["PWD", "OLDPWD"].filter((name) => !Object.hasOwn(env, name));
  // At level 1, a bash whose input is a socket, as ours are, takes us for rshd and runs ~/.bashrc first.
  const level = Object.hasOwn(env, "SHLVL") ? "" : "SHLVL=2; export SHLVL; ";
  const script = `read -r go <&3 || exit 1; exec 3<&-; unset go ${extra.join(" ")}; ${level}exec "$@"`;
  return { command: "/bin/sh", args: ["-c", script, "sh", command, ...args] };
}

/** Signals that end a terminal's programs do not end the watcher: it is the one that must come last. */
const watcherScript = `
trap "" HUP INT TERM QUIT
live=" "
while read -r sign group since; do
  case $sign in
    +) live="$live$group:$since " ;;
    -) case $live in
         *" $group:"*) rest=\${live#*" $group:"}; live="\${live%%" $group:"*} \${rest#* }" ;;
       esac ;;
  esac
done
for entry in $live; do
  group=\${entry%%:*}
  since=\${entry#*:}
  now=$since
  if [ "$since" != "-" ] && [ -r "/proc/$group/stat" ]; then
    stat=
    while read -r line; do stat="$stat $line"; done <"/proc/$group/stat"
    set -- \${stat##*) }
    now=\${20}
  fi
  [ "$now" = "$since" ] && kill -s KILL -- "-$group" 2>/dev/null
done
`;

/** How long a watcher waits for the next group, in milliseconds. It keeps no process from ending. */
const idleMs = 5_000;

/** How often a watcher that somebody ends is replaced before the next group asks for one anyway. */
const replacements = 3;

class Watcher {
  readonly #live = new Map<number, ProcessGroup>();
  #shell: ChildProcess | undefined;
  #replaced = 0;
  #idle: NodeJS.Timeout | undefined;

  /** From now on the group dies with this process. False when the system has no room for the watcher. */
  watch(group: ProcessGroup): boolean {
    this.#live.set(group.id, group);
    this.#replaced = 0;
    clearTimeout(this.#idle);
    if (this.#shell !== undefined) this.#say(added(group));
    else if (!this.#open()) {
      this.#live.delete(group.id);
      return false;
    }
    return true;
  }

  /** The group has ended. With the last one the watcher ends too, when no other comes soon. */
  release(group: ProcessGroup): void {
    if (!this.#live.delete(group.id)) return;
    this.#say(`- ${group.id} -\n`);
    if (this.#live.size === 0) this.#idle = setTimeout(() => this.#end(), idleMs).unref();
  }

  #end(): void {
    const shell = this.#shell;
    this.#shell = undefined;
    shell?.stdin?.end();
  }

  #open(): boolean {
    const shell = spawnWatcher();
    if (shell === undefined) return false;
    this.#shell = shell;
    shell.once("exit", () => {
      if (this.#shell !== shell) return;
      this.#shell = undefined;
      if (this.#live.size > 0 && this.#replaced++ < replacements) this.#open();
    });
    for (const group of this.#live.values()) this.#say(added(group));
    return true;
  }

  #say(line: string): void {
    this.#shell?.stdin?.write(line);
  }
}

function added(group: ProcessGroup): string {
  return `+ ${group.id} ${group.born?.split("/")[1] ?? "-"}\n`;
}

/**
 * The same for a command that is a shell itself, whose last argument is its script: it waits at the gate on its own, which
 * saves the start of another shell. A bash at work numbers the lines of the script as they are.
 */
export function selfGated(args: readonly string[]): string[] {
  const script = args.at(-1) ?? "";
  return [...args.slice(0, -1), `read -r go <&3 || exit 1; exec 3<&-; unset go; LINENO=0\n${script}`];
}

/** Start the watcher's shell; undefined when the system has no room for it. */
export function spawnWatcher(): ChildProcess | undefined {
  try {
    const shell = spawn("/bin/sh", ["-c", watcherScript], {
      cwd: "/",
      env: {},
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    shell.on("error", () => undefined);
    shell.stdin.on("error", () => undefined);
    // What it watches keeps this process alive, or lets it end; the watcher itself has no say in that.
    shell.unref();
    if (shell.stdin instanceof Socket) shell.stdin.unref();
    return shell.pid === undefined ? undefined : shell;
  } catch {
    return undefined;
  }
}

const watcher = new Watcher();

/** Make a group die with this process, however it ends. False when that cannot be promised now. */
export function watchGroup(group: ProcessGroup): boolean {
  return process.platform === "win32" || watcher.watch(group);
}

/** Forget a group that has ended. */
export function releaseGroup(group: ProcessGroup): void {
  watcher.release(group);
}
