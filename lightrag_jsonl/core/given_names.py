"""Given names: those of most people in the United States by the census of 1990 (public domain), without names that
are mostly words, places or surnames.
"""

from lightrag_jsonl.core.text import words

GIVEN_NAMES = words(
    """
    aaron abby abel abigail abraham ada adam addie adele adeline adolfo adolph adrian adriana
    adrienne agnes agustin aida aileen aimee alan albert alberta alberto alejandro alex
    alexander alexandra alexis alfonso alfred alfredo ali alice alicia alisa alisha alison
    allan allen allison alma alonzo alphonso alta alton alvaro alvin alyssa amanda amelia amos
    amy andre andrea andres andrew andy angel angela angelia angelica angelina angeline angelo
    angie anita ann anna anne annette annie anthony antoine antoinette anton antonia archie
    arlene armand armando arnold arthur arturo ashley aubrey audrey aurora avery barry bart
    basil beatrice beatriz becky belinda ben benito benjamin bennie benny bernadette bernard
    bernardo bernice bert bertha bessie beth bethany betsy bette bettie betty beulah beverly
    bill billie billy blaine blake blanca blanche bob bobbi bobbie bobby bonita bonnie boyd
    brad bradford bradley brady brandi brandon brenda brendan brent bret brett
    brian bridget brittney brooke bruce bruno bryan bryant bryce bryon burton byron caitlin
    caleb callie calvin cameron camille candace candice cara carey carl carla carlos carlton
    carmela carmen carol carole caroline carolyn carrie carroll cary casey cassandra cassie
    catherine cathleen cathy cecelia cecil cecile cecilia cedric celeste celia cesar
    charlene charles charlie cheri cherie cheryl chris christa christi christie
    christina christine christopher christy chuck cindy claire clarence clarice clark claude
    claudette claudia clayton clement cleo clifford clifton clint clyde cody cole colin colleen
    connie conrad constance consuelo cora corey corinne cornelius cory courtney coy craig
    cristina curt curtis cynthia damian damien damon dan dana dane daniel danielle danny dante
    daphne darin darius darla darlene darnell darrel darrell darren darrin darryl darwin daryl
    dave david davis deana deanna debbie debora deborah debra dee delbert delia della delores
    deloris demetrius dena denis denise dennis denny derek derick derrick desiree desmond devin
    dewayne dewey dexter diana diane dianna dianne dina dion dixie dolly dolores domingo
    dominic dominick dominique don donald donna donnell donnie donovan dora doreen doris
    dorothea dorothy dorthy doug douglas doyle duane dudley dustin dwayne dwight dylan earnest
    eddie eddy edgar edith edmond edmund edna eduardo edward edwin effie efrain eileen
    elaine elbert eldon eleanor elena eli elias elijah elisa elisabeth elise elizabeth ella
    ellen elliot elliott ellis elma elmer eloise elsa elsie elton elva elvin elvira elvis
    elwood emanuel emery emil emilio emily emma emmanuel emmett enrique eric erica erick erik
    erika erin erma ernest ernestine ernesto ernie ervin erwin esperanza essie esteban estella
    estelle ester esther ethan ethel etta eugene eugenia eula eunice eva evan evelyn everett
    fabian fannie fay faye federico felicia felipe felix fernando fidel floyd forrest frances
    francine francis francisca frankie franklin fred freda freddie freddy frederick fredrick
    frieda gabriel gabriela gabrielle garrett garry gary gavin gayle genevieve geoffrey
    george gerald geraldine gerard gerardo gerry gertrude gilbert gilberto gina gladys glenda
    glenn glenna gloria goldie gonzalo gordon gracie graciela grady graham greg gregg gregorio
    gregory gretchen grover guillermo gus gustavo gwen gwendolyn hal hannah hans
    harlan harley harold harriet harrison harry harvey hattie hector heidi helen helena helene
    henrietta henry herbert heriberto herman hilda hiram homer horace howard hubert hugh hugo
    humberto ian ida ignacio imogene ina inez ingrid ira irene irma irvin irving isaac isabel
    isabelle isaiah ismael issac iva ivan jack jackie jaclyn jacob jacqueline jacquelyn jaime
    jake jamal james jamie jan jana jane janelle janet janette janice janie janine janis jared
    jarrod jarvis jason jasper javier jayne jayson jean jeanette jeanine jeanne jeannette
    jeannie jeannine jeff jefferson jeffery jeffrey jeffry jenifer jenna jennie jennifer jenny
    jerald jeremiah jeremy jermaine jerome jerry jess jesse jessica jessie jesus jewell
    jill jillian jim jimmie jimmy joan joann joanna joanne joaquin jocelyn jodi jodie jody joe
    joel joesph joey johanna john johnathan johnnie johnny jolene jon jonathan jonathon joni
    jorge josefina joseph josephine josh joshua josie joyce juan juana juanita judith judy
    julia julian julie julio julius justin justine kara karen kari karin karl karla kate
    katharine katherine kathleen kathryn kathy katie katrina kay kayla keisha keith kelley
    kelli kellie kelly kelsey kelvin ken kendall kendra kendrick kenneth kenny keri kermit
    kerri kerry kevin kim kimberley kimberly kirk kirsten kris krista kristen kristi kristie
    kristin kristina kristine kristopher kristy krystal kurt kyle lacey ladonna lamar lamont
    lana lara larry latasha latonya latoya laura lauren laurence laurie laverne lawrence
    lea leah leanne lee leigh lela leland lena lenora leo leola leon leona leonard leonardo
    leroy lesley leslie lester leticia levi lewis lila lillian lillie linda lindsay lindsey
    lionel lisa lizzie lloyd lois lola lonnie lora loren lorena lorene lorenzo loretta lori
    lorie lorna lottie lou louie louis louise lourdes lowell loyd lucas lucia lucile lucille
    lucinda lucy luella luis luke lula lupe luther luz lydia lyle lynda lynette lynn lynne
    mabel mable mack madeline mae maggie malcolm mamie mandy manuel manuela marc marcel
    marcella marcia marco marcos marcus marcy margaret margarita margie margo margret
    marguerite maria marian marianne maribel marie marilyn mario marion marisa marisol
    marissa maritza marjorie marla marlene marlin marlon marsha marshall marta martha martin
    martina marty marvin mary maryann mathew matt matthew mattie maude maureen maurice mauricio
    mavis max maxine maxwell maynard mayra megan meghan melanie melba melinda melissa
    melvin meredith merle micah michael micheal michel michele michelle mickey miguel
    mike mildred millard millie milton mindy minnie miranda miriam mitchell moises mollie molly
    mona monique monte monty morgan morris moses muriel murray myra myrna myron nadine nancy
    naomi natalie natasha nathan nathaniel neal ned neil nell nellie nelson nettie nicholas
    nichole nick nickolas nicolas nicole nikki nina noah noe nolan nora norbert norma norris
    odell ola olga oliver olivia ollie omar ora orville oscar otis otto owen pablo paige pam
    pamela patrica patrice patricia patrick patsy patti patty paul paula paulette pauline pedro
    peggy percy perry pete peter petra phil philip phillip phyllis pierre polly preston
    priscilla quentin quincy quinton rachael rachel rachelle rafael ralph ramiro ramon ramona
    randal randall randolph randy raphael raquel raul raymond reba rebecca rebekah reggie
    regina reginald rena rene renee reuben rex reynaldo rhonda ricardo richard rick rickey
    rickie ricky rigoberto riley rita robbie robert roberta roberto robyn rocco rochelle
    roderick rodger rodney rodolfo rodrigo rogelio roger roland rolando romeo ron ronald
    ronda ronnie roosevelt rory rosalie rosalind rosario roscoe rosemarie rosemary rosetta
    rosie ross roxanne royce ruben rudolph rudy rufus russel russell ruth ryan sabrina sadie
    sallie sally salvatore sam samantha sammie sammy samuel sandra santos sara sarah saul scot
    scott scotty sean sebastian selma sergio seth shana shane shanna shannon shari sharon shaun
    shauna shawn shawna sheena sheila shelby sheldon shelia shelley shelly sheri sherman sherri
    sherrie sheryl shirley sidney silvia simon socorro solomon sondra sonia sonja sonya
    sophia sophie stacey staci stacie stacy stan stanley stefanie stella stephan stephanie
    stephen steve steven stewart stuart sue susan susana susanne susie suzanne sybil sylvester
    sylvia tabitha tamara tami tamika tammie tammy tanya tara tasha ted teddy terence teresa
    teri terrance terrell terrence terri terry thaddeus thelma theodore theresa therese thomas
    thurman tiffany tim timmy timothy tina toby todd tom tomas tommie tommy toni tonia tony
    tonya tracey traci tracie tracy travis trent trevor tricia trina trisha troy trudy tyrone
    tyson ulysses ursula valerie vance vanessa vaughn velma vera vern verna vernon veronica
    vicente vicki vickie vicky victor vince vincent virgil vivian wallace walter wanda
    warren wayne wendell wendy wesley whitney wilbert wilbur wiley wilfred wilfredo willa
    willard william williams willie willis wilma wilson winifred winnie winston woodrow xavier
    yolanda yvette yvonne zachary
    """
)
