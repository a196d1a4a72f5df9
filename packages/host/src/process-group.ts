/**
 * Process groups: identification across processes, signals, and termination together with this process.
 *
 * A child process that outlives a parent killed by SIGKILL performs its effect later, unnoticed. So a small shell,
 * the watcher, holds the read end of a pipe from this process and a list of live groups. When the pipe closes,
 * because this process ended in any way, the watcher kills all listed groups. The watcher runs while groups are
 * alive, and a few seconds longer, so that consecutive commands share the watcher.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { hash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { Socket } from "node:net";
import { getSystemCode } from "./host-error.ts";

/**
 * Process group as plain data for a journal: the pid and, where the system reports it, the start of the group leader
 * and its place.
 */
export interface ProcessGroup {
  readonly id: number;
  /** Boot id and start time of the leader, on Linux; differs for a later process with the same pid. */
  readonly startId?: string;
  /** Hash of the id of the machine, on Linux with a machine id. */
  readonly machineId?: string;
  /** PID namespace of the pid, on Linux: another container has other processes with the same pids. */
  readonly pidNamespace?: string;
}

/** Returns the group of a live leader. */
export function getProcessGroup(id: number): ProcessGroup {
  const started = getStartTime(id);
  return started === undefined ? { id } : { id, startId: `${getBootId()}/${started}`, ...getPlace() };
}

/**
 * Kills a group left behind by an earlier process, identified by its journal entry. Returns `killed`; `gone` if the
 * group no longer exists (also if its pid now belongs to another process, or this machine was restarted); or `unknown`
 * without sending a signal if the system cannot identify the group, or the group belongs to another machine or
 * container, where it may be alive. Throws the system error if the group exists and may not be killed.
 */
export function killProcessGroup(group: ProcessGroup): "killed" | "gone" | "unknown" {
  if (group.startId === undefined || process.platform !== "linux" || group.id <= 1) return "unknown";
  if (getProcessGroup(group.id).startId !== group.startId) return isFromHere(group) ? "gone" : "unknown";
  return sendSignal(group.id, "SIGKILL") ? "killed" : "gone";
}

/** Returns true for a group of this machine: of an earlier boot, or of this boot and of this PID namespace. */
function isFromHere({ startId = "", machineId, pidNamespace }: ProcessGroup): boolean {
  const here = getPlace();
  const isThisBoot = startId.startsWith(`${getBootId()}/`);
  if (isThisBoot) return pidNamespace !== undefined && pidNamespace === here.pidNamespace;
  return machineId !== undefined && machineId === here.machineId;
}

/**
 * Signals every process of a group; false for a group without processes. The system does not reuse a pid while its
 * group has members, so a live process with the pid of a collected leader is unrelated and is not signalled.
 */
export function signalGroup(id: number, signal: NodeJS.Signals, leader: "running" | "collected"): boolean {
  if (leader === "collected" && isProcessAlive(id)) return false;
  try {
    return sendSignal(id, signal);
  } catch (error) {
    // macOS returns EPERM for a group of zombies; elsewhere the group changed its user, and only that user can kill
    // the group.
    if (getSystemCode(error) === "EPERM") return false;
    throw error;
  }
}

/** Returns true if a group has members, including zombies. */
export function isGroupAlive(id: number): boolean {
  try {
    return process.kill(-id, 0);
  } catch (error) {
    return getSystemCode(error) === "EPERM";
  }
}

function sendSignal(id: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(-id, signal);
  } catch (error) {
    if (getSystemCode(error) === "ESRCH") return false;
    throw error;
  }
}

function isProcessAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return getSystemCode(error) === "EPERM";
  }
}

/** Returns the start time of a process in ticks since boot; undefined without /proc. */
function getStartTime(pid: number): string | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  // The program name in parentheses can contain any character: fields are counted after the last parenthesis (field
  // 22).
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

let knownBootId: string | undefined;

function getBootId(): string {
  knownBootId ??= readProc("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
  return knownBootId;
}

type Place = Pick<ProcessGroup, "machineId" | "pidNamespace">;

let knownPlace: Place | undefined;

function getPlace(): Place {
  knownPlace ??= readPlace();
  return knownPlace;
}

/** Files with the id of the machine, in order; images of containers often have none, or an empty one. */
const machineIdFiles: readonly string[] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

function readPlace(): Place {
  const machine = machineIdFiles.map((path) => readProc(path)?.trim() ?? "").find((id) => /^[0-9a-f]{32}$/.test(id));
  const pidNamespace = readPidNamespace();
  return {
    // The id of a machine is confidential: only its hash leaves the machine.
    ...(machine === undefined ? {} : { machineId: hash("sha256", `statewright ${machine}`).slice(0, 32) }),
    ...(pidNamespace === undefined ? {} : { pidNamespace }),
  };
}

function readPidNamespace(): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return undefined;
  }
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
 * Gate before every command: a shell that waits for a line on descriptor 3, then executes the command. If this
 * process is killed between fork and registration with the watcher, the line never arrives and the command never
 * runs.
 */
export function createGatedCommand(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): { command: string; args: string[] } {
  // Variables that a shell sets by itself.
  const shellVariables = ["PWD", "OLDPWD"].filter((name) => !Object.hasOwn(env, name));
  // With SHLVL 1 and a socket as input, bash assumes rshd and runs ~/.bashrc first.
  const level = Object.hasOwn(env, "SHLVL") ? "" : "SHLVL=2; export SHLVL; ";
  const script = `read -r go <&3 || exit 1; exec 3<&-; unset go ${shellVariables.join(" ")}; ${level}exec "$@"`;
  return { command: "/bin/sh", args: ["-c", script, "sh", command, ...args] };
}

/** Ignores the signals that terminate programs of a terminal: the watcher must end last. */
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

/** Idle time of a watcher before it ends, in milliseconds. The timer does not keep the process alive. */
const idleMs = 5_000;

/** Maximum number of restarts of a killed watcher before the next group starts a new watcher anyway. */
const maxRestarts = 3;

class Watcher {
  readonly #live = new Map<number, ProcessGroup>();
  #shell: ChildProcess | undefined;
  #replaced = 0;
  #idle: NodeJS.Timeout | undefined;

  /** Registers a group to be killed with this process. False if the system cannot start a watcher. */
  watch(group: ProcessGroup): boolean {
    this.#live.set(group.id, group);
    this.#replaced = 0;
    clearTimeout(this.#idle);
    if (this.#shell !== undefined) this.#sendLine(toWatchLine(group));
    else if (!this.#open()) {
      this.#live.delete(group.id);
      return false;
    }
    return true;
  }

  /** Removes a group that has ended. The watcher ends some time after the last group. */
  release(group: ProcessGroup): void {
    if (!this.#live.delete(group.id)) return;
    this.#sendLine(`- ${group.id} -\n`);
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
      if (this.#live.size > 0 && this.#replaced++ < maxRestarts) this.#open();
    });
    for (const group of this.#live.values()) this.#sendLine(toWatchLine(group));
    return true;
  }

  #sendLine(line: string): void {
    this.#shell?.stdin?.write(line);
  }
}

function toWatchLine(group: ProcessGroup): string {
  return `+ ${group.id} ${group.startId?.split("/")[1] ?? "-"}\n`;
}

/**
 * Gate for a command that is a shell with its script as last argument: the script itself waits at the gate, which
 * saves a shell. Resets LINENO, so that bash reports the line numbers of the original script.
 */
export function addGateToScript(args: readonly string[]): string[] {
  const script = args.at(-1) ?? "";
  return [...args.slice(0, -1), `read -r go <&3 || exit 1; exec 3<&-; unset go; LINENO=0\n${script}`];
}

/** Starts the shell of the watcher; undefined if the system cannot start a process. */
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
    // Only the watched commands keep this process alive, not the watcher.
    shell.unref();
    if (shell.stdin instanceof Socket) shell.stdin.unref();
    return shell.pid === undefined ? undefined : shell;
  } catch {
    return undefined;
  }
}

const watcher = new Watcher();

/** Registers a group to be killed when this process ends, in any way. False if the watcher is unavailable. */
export function watchGroup(group: ProcessGroup): boolean {
  return process.platform === "win32" || watcher.watch(group);
}

/** Unregisters a group that has ended. */
export function releaseGroup(group: ProcessGroup): void {
  watcher.release(group);
}
