import { NAMES } from '../lessons';

/** The lessons that can be opened: those of the page that the server knows too. */
class Course {
  /** The pages of the server, or null while they are not known. */
  served = $state.raw<string[] | null>(null);

  get names(): string[] {
    const served = this.served;
    return served ? NAMES.filter((name) => served.includes(name)) : NAMES;
  }
}

export const course = new Course();
