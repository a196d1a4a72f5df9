/**
 * Returns true for a JSON value with more nesting levels. Not recursive: a deep value would exhaust the stack. Linear
 * in the size of the value.
 */
export function isNestedDeeper(value: unknown, levels: number): boolean {
  let level: readonly unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    const containers = level.filter((each) => typeof each === "object" && each !== null);
    if (containers.length > 0 && depth >= levels) return true;
    level = containers.flatMap((each): readonly unknown[] => Object.values(each as object));
  }
  return false;
}
