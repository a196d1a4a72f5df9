/** Types read from a declared node: its returned values, the targets of its commands and its input. */
import type { DeepReadonly } from "../base/json.ts";
import type { Schema } from "../base/schema.ts";
import type { Goto, Send } from "./command.ts";

/** Value that a node or its error handler returns, without promises. */
export type ReturnedValue<Node> = Node extends (...args: never) => infer Returned
  ? Awaited<Returned>
  :
      | (Node extends { readonly run: (...args: never) => infer Returned } ? Awaited<Returned> : never)
      | (Node extends { readonly onError: (...args: never) => infer Handled } ? Awaited<Handled> : never);

/** Items of a returned list; any other value itself. */
export type ReturnedItem<Returned> = Returned extends readonly (infer Item)[] ? Item : Returned;

/** Targets of the commands that a node returns. */
export type ReturnedTargets<Node> =
  ReturnedItem<ReturnedValue<Node>> extends infer Item
    ? Item extends Goto<infer Target> | Send<infer Target>
      ? Target
      : never
    : never;

/** Input of a node's tasks, as sent, with readonly parts as in the state; `never` for a node without input. */
export type TaskInput<Node> = Node extends { readonly kind: "input"; readonly input: Schema<infer Given, unknown> }
  ? DeepReadonly<Given>
  : never;

/** Names of the nodes that take an input. */
export type InputNodeNames<Nodes> = {
  [Name in keyof Nodes & string]: Nodes[Name] extends { readonly kind: "input" } ? Name : never;
}[keyof Nodes & string];
